import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../lib/error-codes.ts'
import { createComposer } from './compose.ts'
import type { Composed, ComposingTask } from './compose-in-thread.ts'
import { createMailTokens } from './mail-tokens.ts'

/* A worker thread that composes the message in `workerData` and posts the result: see `createMailComposer`. */

const { key, publicUrl, signedAt, parts, only } = workerData as ComposingTask
const { content } = parts

const composer = createComposer({
  tokens: createMailTokens(Buffer.from(key)),
  publicUrl: () => publicUrl ?? '',
  clock: { now: () => signedAt },
})
// A Buffer arrives in a thread as a Uint8Array.
const attachments = content.attachments.map((attachment) => ({
  ...attachment,
  content: Buffer.from(attachment.content.buffer, attachment.content.byteOffset, attachment.content.byteLength),
}))
async function compose(): Promise<Composed> {
  try {
    return { message: await composer.compose({ ...parts, content: { ...content, attachments } }, only) }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

const composed = await compose()
// A buffer can be transferred instead of copied if the message is all of it.
const isOwn = 'message' in composed && composed.message.length === composed.message.buffer.byteLength
parentPort?.postMessage(composed, isOwn ? [composed.message.buffer as ArrayBuffer] : [])
