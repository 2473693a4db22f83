/**
 * What is read of a bytea with one statement: its bytes come as text of twice the length, which is read in one turn. A
 * multiple of 3, so that slices in base64 stand one after another. Bytes.
 */
export const sliceBytes = 3 * 1_048_576

/** Reads the slice that begins behind `from` bytes. Undefined: there is none, or all is gone. */
export type ReadSlice = (from: number) => Promise<Buffer | undefined>

/** All `size` bytes, of which the first are there. Undefined: they are gone. */
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
