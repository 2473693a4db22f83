import { importLimits } from '../../contract/import-files.ts'
import { type Db, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { insertChunk, readChunk } from './chunk-queries.ts'
import type { ImportKey } from './queries.ts'
import { canceledMeanwhile, chunkBytes, fileTooLarge } from './store-upload.ts'
import type { ZipBytes } from './zip-directory.ts'

/*
 * A ZIP is stored as it arrives, and unpacked then: its directory is at its end, and what stands before a file may lack
 * its size or lie about it. So no program may read it from its beginning (APPNOTE 4.3.1, and the threads
 * ZJONSSON/node-unzipper#202 and thejoshwolfe/yauzl#15 of those who tried).
 */

/**
 * Stores a ZIP as it arrives. Returns its size in bytes. Throws `payload_too_large` beyond 1 GiB, and `conflict` when the
 * import is canceled meanwhile.
 */
export async function storeZip(
  { db, clock }: { db: Db; clock: Clock },
  key: ImportKey,
  file: AsyncIterable<Buffer>,
): Promise<number> {
  let waiting: Buffer[] = []
  let [waitingBytes, position] = [0, 0]

  async function store(): Promise<void> {
    const chunk = { position, bytes: Buffer.concat(waiting), at: clock.now() }
    position += waitingBytes
    waiting = []
    waitingBytes = 0
    if (!(await inTransaction(db, (trx) => insertChunk(trx, key, chunk, 'import_zip_chunks'))))
      throw canceledMeanwhile()
  }

  for await (const bytes of file) {
    waiting.push(bytes)
    waitingBytes += bytes.length
    if (position + waitingBytes > importLimits.fileBytes) throw fileTooLarge()
    if (waitingBytes >= chunkBytes) await store()
  }
  if (waitingBytes > 0) await store()
  return position
}

/** Returns the bytes of a stored ZIP. Keeps the last piece that was read, for the many small reads of a directory. */
export function readStoredZip(db: Db, key: ImportKey, size: number): ZipBytes {
  let last: { position: number; bytes: Buffer } | undefined

  /** Returns the bytes from `position` to the end of their piece. */
  async function from(position: number): Promise<Buffer> {
    if (last === undefined || position < last.position || position >= last.position + last.bytes.length) {
      last = await readChunk(db, key, position, 'import_zip_chunks')
      // It was canceled, and its file deleted.
      if (last === undefined || position >= last.position + last.bytes.length) throw canceledMeanwhile()
    }
    return last.bytes.subarray(position - last.position)
  }

  async function* pieces(begin: number, end: number): AsyncGenerator<Buffer> {
    for (let position = begin; position < Math.min(end, size); ) {
      const bytes = (await from(position)).subarray(0, end - position)
      yield bytes
      position += bytes.length
    }
  }

  return {
    size,
    async read(position, length) {
      const found: Buffer[] = []
      if (position >= 0) for await (const bytes of pieces(position, position + length)) found.push(bytes)
      return Buffer.concat(found)
    },
    pieces,
  }
}
