/**
 * Size of the part of a bytea that one statement reads. Bytes. A bytea arrives as text of twice its length, which is
 * parsed in one turn of the event loop. The size is a multiple of 3, so that slices in base64 can be concatenated.
 */
export const sliceBytes = 3 * 1_048_576

/** Reads the slice that begins after `from` bytes. Undefined: there is none, or the row is deleted. */
export type ReadSlice = (from: number) => Promise<Buffer | undefined>

/** Reads the rest of a value of `size` bytes that begins with `first`. Returns undefined when the row is deleted. */
export async function readWhole(first: Buffer, size: number, readSlice: ReadSlice): Promise<Buffer | undefined> {
  if (size === first.length) return first
  const content = Buffer.allocUnsafeSlow(size)
  let read = first.copy(content)
  while (read < size) {
    const slice = await readSlice(read)
    if (slice === undefined || slice.length === 0) return undefined
    read += slice.copy(content, read)
  }
  return content
}
