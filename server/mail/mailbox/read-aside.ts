import { Worker } from 'node:worker_threads'
import { type ReadMessage, readContent, unreadable } from './parse.ts'

/** Longer messages are read in a thread: the library decodes a text at once, a second for 10 MB. Bytes. */
const largeBytes = 262_144
/** MiB. */
const defaultHeap = 512

/**
 * As `readContent`, with others having their turn meanwhile. `message` is empty afterwards where it is large.
 *
 * @param heapMebibytes What the thread may take beside the message; what takes more cannot be read. Default: 512.
 */
export async function readAside(message: Buffer, heapMebibytes = defaultHeap): Promise<ReadMessage> {
  if (message.length <= largeBytes) return readContent(message)
  // Memory that is not shared with anything else: that of a Buffer as large as this, all of it, is its own.
  const own = message.length === message.buffer.byteLength ? message : Buffer.from(message)
  const { promise, resolve } = Promise.withResolvers<ReadMessage | null>()
  const thread = new Worker(new URL('./parse-thread.ts', import.meta.url), {
    workerData: own,
    transferList: [own.buffer as ArrayBuffer],
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heapMebibytes },
  })
  thread.once('message', resolve)
  thread.once('error', () => resolve(null))
  thread.once('exit', () => resolve(null))
  return (await promise) ?? unreadable
}
