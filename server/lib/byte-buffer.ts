/** Joins bytes that arrive in pieces. */
export type ByteCollector = {
  /** Bytes of all pieces, including those above the limit, which are not kept. */
  readonly length: number
  add(piece: Buffer): void
  /** Allocates one block for `bytes` bytes in total, so that `take` does not have to copy. */
  reserve(bytes: number): void
  /** Returns the kept bytes in one buffer and drops them here. Call it once. */
  take(): Buffer
}

/** Largest block in bytes, unless one piece is larger. */
const maxBlockBytes = 65_536

/**
 * Keeps the first `maxBytes` bytes. Pieces are copied, because the sender decides how small they are: a piece of one
 * byte that is kept as it is costs a hundred bytes.
 */
export function collectBytes(maxBytes: number): ByteCollector {
  const blocks: Buffer[] = []
  /** Bytes used in the last block. */
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

/** Smallest buffer that is released, in bytes. Smaller ones may share their memory with others. */
const minReleasedBytes = 1_048_576

/**
 * Frees the memory of a buffer of at least 1 MiB at once and leaves the buffer empty. The garbage collector would let
 * several large bodies pile up first. Does nothing to smaller buffers.
 */
export function releaseBytes(bytes: Buffer): void {
  const { buffer, length } = bytes
  if (length >= minReleasedBytes && length === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
