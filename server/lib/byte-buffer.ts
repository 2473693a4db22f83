/** Bytes that come in pieces, put together. */
export type ByteCollector = {
  /** Of all pieces, kept or not. */
  readonly length: number
  add(piece: Buffer): void
  /** Takes memory for so many bytes in all, in one piece, so that `take` need not copy them. */
  reserve(bytes: number): void
  /** What was kept, in one buffer, and is forgotten here: to be called once. */
  take(): Buffer
}

/** Of a block that is not made for one larger piece. */
const maxBlockBytes = 65_536

/**
 * Keeps the first `maxBytes` of what it is given. Pieces are copied, since whoever sends decides how small
 * they are: each of one byte costs a hundred where it is kept as it is.
 */
export function collectBytes(maxBytes: number): ByteCollector {
  const blocks: Buffer[] = []
  /** Bytes of the last block that hold something. */
  let filled = 0
  let kept = 0
  let length = 0

  function addBlock(atLeast: number): Buffer {
    const block = Buffer.allocUnsafe(Math.max(atLeast, Math.min(kept, maxBlockBytes, maxBytes - kept)))
    blocks.push(block)
    filled = 0
    return block
  }

  return {
    get length() {
      return length
    },
    add(piece) {
      length += piece.length
      let rest = piece.subarray(0, maxBytes - kept)
      while (rest.length > 0) {
        const last = blocks.at(-1)
        const block = last === undefined || filled === last.length ? addBlock(rest.length) : last
        const copied = rest.copy(block, filled)
        filled += copied
        kept += copied
        rest = rest.subarray(copied)
      }
    },
    reserve(bytes) {
      const whole = Buffer.allocUnsafe(Math.max(Math.min(bytes, maxBytes), kept))
      let copied = 0
      for (const block of blocks.splice(0))
        copied += block.copy(whole, copied, 0, Math.min(block.length, kept - copied))
      blocks.push(whole)
      filled = kept
    },
    take() {
      const [first, ...more] = blocks.splice(0)
      return first !== undefined && more.length === 0
        ? first.subarray(0, kept)
        : Buffer.concat(first === undefined ? [] : [first, ...more], kept)
    },
  }
}

/** Of smaller ones, several may share their memory. Bytes. */
const minReleasedBytes = 1_048_576

/**
 * Gives the memory of large bytes back at once: left to the garbage collector, that of several bodies comes together
 * first. Afterwards they are empty. Smaller ones stay.
 */
export function releaseBytes(bytes: Buffer): void {
  const { buffer, length } = bytes
  if (length >= minReleasedBytes && length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
