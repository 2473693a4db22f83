import { parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../lib/error-codes.ts'
import { createComposer } from './compose.ts'
import type { Composed, ComposingTask } from './compose-in-thread.ts'
import { createMailTokens } from './tokens.ts'

/* Composes the message it is started with, and sends it: see `createMailComposer`. */

const { key, publicUrl, signedAt, parts, only } = workerData as ComposingTask
const { content } = parts

const composer = createComposer({
  tokens: createMailTokens(Buffer.from(key)),
  publicUrl: () => publicUrl ?? '',
  clock: { now: () => signedAt },
})
// What arrives in a thread is a Uint8Array.
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
// Memory that is not shared with anything else can be handed over.
const isOwn = 'message' in composed && composed.message.length === composed.message.buffer.byteLength
parentPort?.postMessage(composed, isOwn ? [composed.message.buffer as ArrayBuffer] : [])
