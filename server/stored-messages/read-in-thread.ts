import { largeBytes, runInThread } from '../lib/worker-thread.ts'
import { type ReadMessage, readContent, unparsableMessage } from './parse.ts'

/** MiB. */
const defaultHeap = 512

/**
 * As `readContent`, with others having their turn meanwhile: the library decodes a text at once, a second for 10 MB.
 * `message` is empty afterwards where it is large.
 *
 * @param heapMebibytes What the thread may take beside the message; what takes more cannot be read. Default: 512.
 */
export async function readAside(message: Buffer, heapMebibytes = defaultHeap): Promise<ReadMessage> {
  if (message.length <= largeBytes) return readContent(message)
  // Memory that is not shared with anything else: that of a Buffer as large as this, all of it, is its own.
  const own = message.length === message.buffer.byteLength ? message : Buffer.from(message)
  const transfer = [own.buffer as ArrayBuffer]
  const module = new URL('./parse-thread.ts', import.meta.url)
  return (await runInThread<ReadMessage>(module, { data: own, transfer, heapMebibytes })) ?? unparsableMessage
}
