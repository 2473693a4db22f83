import { importLimits } from '../../contract/import-files.ts'
import { type Db, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'
import { insertChunk } from './chunk-queries.ts'
import { NotDecodableError, type UploadDecoder } from './decode-upload.ts'
import type { ImportKey } from './queries.ts'

/*
 * A file is stored in UTF-8, in pieces of 1 MiB as rows of a table. So any process can read on where another one ended,
 * pieces that are done are deleted, and nothing but PostgreSQL is needed to run several processes.
 */

/** Bytes of a piece of the file in the database. */
export const chunkBytes = 1_048_576

/**
 * Yields a file in UTF-8, without a byte order mark, as it arrives. Throws `payload_too_large` beyond 1 GiB, of the file
 * or of its UTF-8, and `rule_violation` when it is not text of its encoding.
 */
export async function* inUtf8(file: AsyncIterable<Buffer>, decoder: UploadDecoder): AsyncGenerator<Buffer> {
  let [received, made] = [0, 0]
  try {
    for await (const bytes of file) {
      received += bytes.length
      if (received > importLimits.fileBytes) throw fileTooLarge()
      const piece = Buffer.from(decoder.write(bytes))
      made += piece.length
      if (made > importLimits.fileBytes) throw fileTooLarge()
      if (piece.length > 0) yield piece
    }
    const rest = Buffer.from(decoder.end())
    if (rest.length > 0) yield rest
  } catch (error) {
    if (!(error instanceof NotDecodableError)) throw error
    throw brokenRule('body', `${error.message}: convert it to UTF-8, or say its encoding in ?encoding=`)
  }
}

/** Returns the error for a file that is too large. */
export function fileTooLarge(): DomainError {
  return new DomainError(
    'payload_too_large',
    `The file is larger than the limit of ${importLimits.fileBytes} bytes: send it in parts, each with the head.`,
  )
}

/**
 * Stores a file as it arrives. Returns where it ends. Throws `conflict` when the import is canceled meanwhile.
 *
 * @param file.first The beginning of the file, which was read before.
 * @param file.begin Where it begins in the import. Default: 0.
 */
export async function storeFile(
  { db, clock }: { db: Db; clock: Clock },
  key: ImportKey,
  { first, rest, begin = 0 }: { first: Buffer; rest: AsyncGenerator<Buffer>; begin?: number },
): Promise<number> {
  let waiting = [first]
  let size = first.length
  let position = begin

  async function store(): Promise<void> {
    const bytes = Buffer.concat(waiting)
    waiting = []
    size = 0
    const chunk = { position, bytes, at: clock.now() }
    position += bytes.length
    if (!(await inTransaction(db, (trx) => insertChunk(trx, key, chunk)))) throw canceledMeanwhile()
  }

  for await (const piece of rest) {
    waiting.push(piece)
    size += piece.length
    if (size >= chunkBytes) await store()
  }
  if (size > 0) await store()
  return position
}

/** Reads so much of a file that its head is in it, if it is not too long. */
export async function beginningOf(text: AsyncGenerator<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  while (size <= importLimits.headBytes) {
    const { value, done } = await text.next()
    if (done) break
    pieces.push(value)
    size += value.length
  }
  return Buffer.concat(pieces)
}

/** Returns the error for an import that was canceled before its file had arrived. */
export function canceledMeanwhile(): DomainError {
  return new DomainError('conflict', 'The import was canceled while its file arrived.')
}
