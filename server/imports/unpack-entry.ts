import { pipeline, Readable } from 'node:stream'
import { crc32, createInflateRaw } from 'node:zlib'
import { importLimits } from '../../contract/import-files.ts'
import { DomainError } from '../shared/errors.ts'
import { type ZipBytes, type ZipEntry, ZipFaultError } from './zip-directory.ts'

/** Bytes that are inflated at a time. */
const inflatedBytes = 65_536

/**
 * Throws `payload_too_large` when the files are larger in all than one may be, and `ZipFaultError` for a ZIP bomb. What the
 * directory says of their sizes is enough: `unpackEntry` yields no more. Files that overlap, as in a bomb whose entries
 * share their bytes, are counted as often as they are there.
 */
export function assertUnpackable(zipBytes: number, entries: readonly ZipEntry[]): void {
  const { fileBytes, zipRatio, zipFreeBytes } = importLimits
  const size = entries.reduce((sum, entry) => sum + entry.size, 0)
  if (size > fileBytes) throw unpackedTooLarge()
  if (size > Math.max(zipFreeBytes, zipRatio * zipBytes)) {
    throw new ZipFaultError(`its files would be unpacked to more than ${zipRatio} times its size`)
  }
}

/**
 * Yields the bytes of a file of a ZIP. Throws `ZipFaultError` where they are not what the directory says: at the latest
 * behind the last ones, and before more than it says are yielded.
 *
 * Source: APPNOTE 4.4.5, 4.4.7; RFC 1951.
 */
export async function* unpackEntry(zip: ZipBytes, entry: ZipEntry): AsyncGenerator<Buffer> {
  if (entry.isEncrypted) throw new ZipFaultError('it is encrypted: take the password away')
  if (entry.method !== 0 && entry.method !== 8) {
    throw new ZipFaultError(`its compression method ${entry.method} is not known: use Deflate, as most programs do`)
  }
  const begin = await entry.begin()
  const packed = zip.pieces(begin, begin + entry.compressedSize)
  let [size, sum] = [0, 0]
  for await (const bytes of entry.method === 0 ? packed : inflated(packed)) {
    size += bytes.length
    if (size > entry.size) throw new ZipFaultError(`it is damaged: it has more than the ${entry.size} bytes it names`)
    sum = crc32(bytes, sum)
    yield bytes
  }
  if (size < entry.size) throw new ZipFaultError(`it is damaged: it has ${size} bytes and names ${entry.size}`)
  if (sum !== entry.crc32) throw new ZipFaultError('it is damaged: its checksum is another one')
}

async function* inflated(packed: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const inflater = createInflateRaw({ chunkSize: inflatedBytes })
  let failure: unknown = null
  async function* source() {
    try {
      yield* packed
    } catch (error) {
      failure = error
      throw error
    }
  }
  // It ends the reading when nobody wants more; errors reach the loop below.
  pipeline(Readable.from(source()), inflater, () => undefined)
  try {
    for await (const bytes of inflater) yield bytes
  } catch (error) {
    if (failure !== null) throw failure
    throw new ZipFaultError('it is damaged: its bytes cannot be unpacked', { cause: error })
  }
}

/** Returns the error for files that are too large together. */
export function unpackedTooLarge(): DomainError {
  return new DomainError(
    'payload_too_large',
    `The files of the ZIP are larger than the limit of ${importLimits.fileBytes} bytes in all: send them in parts, each with the head.`,
  )
}
