import { largeBytes, runInThread } from '../lib/worker-thread.ts'
import { type ReadAttachment, type ReadMessage, readAttachment, readContent, unparsableMessage } from './parse.ts'

/** Default heap limit of the thread in MiB. */
const defaultHeap = 512

/**
 * Like `readContent`, but parses large messages in a worker thread, because the library decodes 10 MB of text in one
 * second and blocks the event loop meanwhile. A large `message` may be empty afterwards: its memory is transferred.
 *
 * @param heapMebibytes The heap limit of the thread in MiB. A message that needs more cannot be parsed. Default: 512.
 */
export async function readInThread(message: Buffer, heapMebibytes = defaultHeap): Promise<ReadMessage> {
  if (message.length <= largeBytes) return readContent(message)
  return (await parse<ReadMessage>(message, { attachment: null, heapMebibytes })) ?? unparsableMessage
}

/** Like `readAttachment`, as `readInThread` does it. */
export async function readAttachmentInThread(message: Buffer, index: number): Promise<ReadAttachment | null> {
  if (message.length <= largeBytes) return readAttachment(message, index)
  const read = await parse<ReadAttachment>(message, { attachment: index, heapMebibytes: defaultHeap })
  // A Buffer comes out of a thread as the array that it is.
  return read && { ...read, content: Buffer.from(read.content.buffer, read.content.byteOffset, read.content.length) }
}

function parse<Result>(
  message: Buffer,
  { attachment, heapMebibytes }: { attachment: number | null; heapMebibytes: number },
): Promise<Result | null> {
  // A buffer can be transferred only if the message is all of it; otherwise it is copied first.
  const own = message.length === message.buffer.byteLength ? message : Buffer.from(message)
  const transfer = [own.buffer as ArrayBuffer]
  const module = new URL('./parse-thread.ts', import.meta.url)
  return runInThread<Result>(module, { data: { message: own, attachment }, transfer, heapMebibytes })
}
