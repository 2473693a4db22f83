import { collectBytes } from '../lib/byte-buffer.ts'

export type ReadMessageOptions = {
  /** Longer messages are refused. */
  maxBytes: number
  /** Maximum bytes to keep. The rest is read and discarded. */
  keepBytes: number
  smallBytes: number
  /** Called once and awaited before more than `smallBytes` are kept. */
  onLarge: () => Promise<void>
}

/**
 * Reads a message and returns its first `keepBytes`. Null: the message is longer than `maxBytes`. It is still read to
 * its end, because the server can reply only then.
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
