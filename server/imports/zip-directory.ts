import { type Entry, fromRandomAccessReaderPromise, getFileNameLowLevel, RandomAccessReader, type ZipFile } from 'yauzl'
import { importLimits } from '../../contract/import-files.ts'
import { printable } from '../lib/printable.ts'

/** The bytes of a ZIP, by their position. */
export type ZipBytes = {
  size: number
  /** Returns `length` bytes, or fewer behind the end. */
  read(position: number, length: number): Promise<Buffer>
  /** Yields the bytes from `from` to `to`, or to the end. */
  pieces(from: number, to: number): AsyncGenerator<Buffer>
}

/** A file in a ZIP, as the directory at its end says. Any of it may be untrue. */
export type ZipEntry = {
  /** With its folders. It names the file to people and is never used as a path. */
  name: string
  isEncrypted: boolean
  /** 0: stored. 8: deflated. */
  method: number
  compressedSize: number
  size: number
  crc32: number
  /** Returns where its bytes begin. Throws `ZipFaultError`. */
  begin(): Promise<number>
}

/** The ZIP cannot be read. The message says why, for people: a sentence without its end. */
export class ZipFaultError extends Error {
  override name = 'ZipFaultError'
}

/**
 * Reads the directory of a ZIP, which is at its end: only there do all sizes stand. Returns its files without folders and
 * without what macOS and others hide beside them. Throws `ZipFaultError`, also for more than 1,000 entries, names of more
 * than 1,024 bytes, and two of one name.
 *
 * Source: APPNOTE 4.3.12, 4.3.16, 4.4.
 */
export async function readDirectory(bytes: ZipBytes): Promise<ZipEntry[]> {
  const reader = new DirectoryReader(bytes)
  return reader.orFault(async () => {
    const options = { autoClose: false, decodeStrings: false, validateEntrySizes: false }
    const zip = await fromRandomAccessReaderPromise(reader, bytes.size, options)
    if (zip.entryCount > importLimits.zipEntries) throw tooManyEntries()
    const entries = new Map<string, ZipEntry>()
    for await (const entry of zip.eachEntry()) {
      const name = nameOf(entry)
      if (isHidden(name)) continue
      if (entries.has(name)) throw new ZipFaultError(`it has two files of the name ${shown(name)}`)
      entries.set(name, {
        name,
        isEncrypted: entry.isEncrypted(),
        method: entry.compressionMethod,
        compressedSize: entry.compressedSize,
        size: entry.uncompressedSize,
        crc32: entry.crc32,
        begin: () => reader.orFault(() => beginOf(zip, entry)),
      })
    }
    return [...entries.values()]
  })
}

/** Returns a name of a file as it is shown to people. */
export function shown(name: string): string {
  const line = printable(name.toWellFormed())
  return line.length <= 200 ? line : `…${line.slice(-199).toWellFormed()}`
}

async function beginOf(zip: ZipFile, entry: Entry): Promise<number> {
  const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true })
  return fileDataStart
}

function nameOf(entry: Entry): string {
  if (entry.fileNameLength > importLimits.zipNameBytes) {
    throw new ZipFaultError(`it has a name of more than ${importLimits.zipNameBytes} bytes`)
  }
  return getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, false)
}

/** Folders, and the files that macOS writes beside each file or that begin with a dot. */
function isHidden(name: string): boolean {
  const parts = name.split('/')
  return name.endsWith('/') || parts[0] === '__MACOSX' || parts.at(-1)?.startsWith('.') === true
}

function tooManyEntries(): ZipFaultError {
  return new ZipFaultError(`it has more than ${importLimits.zipEntries} entries`)
}

type ReadArguments = [
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
  callback: (error: Error | null, bytesRead?: number) => void,
]

/** Gives yauzl the bytes, and tells apart what is wrong with the ZIP from a database that is out of reach. */
class DirectoryReader extends RandomAccessReader {
  readonly #bytes: ZipBytes
  #failure: { error: unknown } | null = null

  constructor(bytes: ZipBytes) {
    super()
    this.#bytes = bytes
  }

  override read(...[buffer, offset, length, position, callback]: ReadArguments): void {
    this.#bytes.read(position, length).then(
      (bytes) => {
        bytes.copy(buffer, offset)
        callback(null, bytes.length)
      },
      (error) => {
        this.#failure = { error }
        callback(new Error('the bytes could not be read'))
      },
    )
  }

  async orFault<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (this.#failure !== null) throw this.#failure.error
      if (error instanceof ZipFaultError) throw error
      const reason = error instanceof Error ? error.message : String(error)
      throw new ZipFaultError(
        `it is damaged or cut off: pack it again, or send the CSV files in it (${printable(reason).slice(0, 200)})`,
        { cause: error },
      )
    }
  }
}
