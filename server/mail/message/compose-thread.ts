import { parentPort, workerData } from 'node:worker_threads'
import { createComposer } from './compose.ts'
import type { ComposingTask } from './compose-aside.ts'
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
const message = await composer.compose({ ...parts, content: { ...content, attachments } }, only)
const own = message.length === message.buffer.byteLength ? message : Buffer.from(message)
parentPort?.postMessage(own, [own.buffer as ArrayBuffer])
