import { setImmediate as nextTurn } from 'node:timers/promises'
import { CsvError, parse } from 'csv-parse'
import { csvOptions, importLimits } from '../../contract/import-files.ts'
import type { Db } from '../database/connection.ts'
import { readChunk } from './chunk-queries.ts'
import type { FilePart } from './parts.ts'
import type { ImportKey } from './queries.ts'

/** The cells of a row, and the byte of the file where the next one begins. */
export type FileRow = { cells: string[]; end: number }

/** The file cannot be read on. The message says why, for people. */
export class BrokenFileError extends Error {
  override name = 'BrokenFileError'
}

/** Bytes parsed in one turn of the event loop. */
const sliceBytes = 65_536

/**
 * Yields the rows of a file from a position of its import, those of a slice at a time. Throws `BrokenFileError`
 * behind the last whole row where a row is too long or a quotation mark is not closed. Reads a piece of the file at a
 * time.
 */
export async function* readRows(
  db: Db,
  key: ImportKey,
  { part, begin }: { part: FilePart; begin: number },
): AsyncGenerator<FileRow[]> {
  let rows: FileRow[] = []
  // As a stream, the parser would drop parsed rows that were not read yet when a later row has an error.
  const parser = parse({
    ...csvOptions(part.delimiter),
    max_record_size: importLimits.rowCharacters,
    on_record(cells: string[], { bytes }) {
      rows.push({ cells, end: begin + bytes })
      return null
    },
  })
  parser.on('error', () => undefined)
  // Nothing comes out, but it ends only when somebody listens.
  parser.resume()
  const written = (write: (done: (error?: Error | null) => void) => void) =>
    new Promise<Error | null>((resolve) => {
      parser.once('error', resolve)
      write((error) => {
        parser.off('error', resolve)
        resolve(error ?? null)
      })
    })
  try {
    for await (const piece of piecesOf(db, key, { begin, end: part.end })) {
      for (let from = 0; from < piece.length; from += sliceBytes) {
        const fault = await written((done) => parser.write(piece.subarray(from, from + sliceBytes), done))
        const read = rows
        rows = []
        if (read.length > 0) yield read
        if (fault !== null) throw brokenBy(fault)
        await nextTurn()
      }
    }
    const fault = await written((done) => parser.end(done))
    if (rows.length > 0) yield rows
    if (fault !== null) throw brokenBy(fault)
  } finally {
    parser.destroy()
  }
}

function brokenBy(error: Error): Error {
  if (!(error instanceof CsvError)) return error
  const isTooLong = error.code === 'CSV_MAX_RECORD_SIZE'
  const reason = isTooLong
    ? `a row is longer than ${importLimits.rowCharacters} bytes; perhaps a quotation mark is not closed`
    : error.message.replace(/ at line \d+$/, '')
  return new BrokenFileError(reason, { cause: error })
}

async function* piecesOf(
  db: Db,
  key: ImportKey,
  { begin, end }: { begin: number; end: number },
): AsyncGenerator<Buffer> {
  for (let position = begin; position < end; ) {
    const chunk = await readChunk(db, key, position)
    const bytes = chunk?.bytes.subarray(position - chunk.position, end - chunk.position)
    // It was canceled, and its file deleted.
    if (bytes === undefined || bytes.length === 0) return
    yield bytes
    position += bytes.length
  }
}
