import { collectBytes } from '../lib/byte-buffer.ts'

export type ReadMessageOptions = {
  /** What is longer is not taken. */
  maxBytes: number
  /** Of a message. The rest is read and forgotten. */
  keepBytes: number
  smallBytes: number
  /** Called once, before more than `smallBytes` are kept; the rest of the message waits for it. */
  onLarge: () => Promise<void>
}

/**
 * The beginning of a message, or all of it. Null: it is longer than `maxBytes`; it is read to its end all the
 * same, since there is no other place for an answer.
 */
export async function readMessage(stream: AsyncIterable<Buffer>, options: ReadMessageOptions): Promise<Buffer | null> {
  const { maxBytes, keepBytes, smallBytes, onLarge } = options
  const message = collectBytes(keepBytes)
  for await (const piece of stream) {
    const kept = Math.min(message.length + piece.length, keepBytes)
    if (message.length <= smallBytes && kept > smallBytes) await onLarge()
    message.add(piece)
  }
  return message.length > maxBytes ? null : message.take()
}
