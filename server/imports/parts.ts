import type { DelimiterName } from '../../contract/import-files.ts'
import type { IgnoredFile, ImportColumn, ImportedFile } from '../database/tables/imports.ts'
import type { ImportRow } from './queries.ts'

/** A CSV file that an import reads: all of it, or one file of its ZIP. */
export type FilePart = {
  /** Of a ZIP: the place of the file in `files`, and its name. */
  inZip: { file: number; name: string } | null
  delimiter: DelimiterName
  columns: readonly ImportColumn[]
  /** The suppression reason of all its rows. Null: the `status` of each row decides. */
  suppressesAs: 'unsubscribe' | 'hard_bounce' | null
  /** Where its first row begins, and where it ends. Bytes of the import. */
  begin: number
  end: number
  isLast: boolean
}

/** Returns the files of a ZIP that are read, in order. */
export function readFilesOf(files: readonly (ImportedFile | IgnoredFile)[]): ImportedFile[] {
  return files.filter((file) => file.readAs !== 'ignored')
}

/** Returns the file that has the byte at the position of an import, or null when all are done. */
export function partAt(row: ImportRow): FilePart | null {
  const position = Number(row.position)
  if (row.files === null) {
    return {
      inZip: null,
      delimiter: row.delimiter as DelimiterName,
      columns: row.columns,
      suppressesAs: row.suppresses_as,
      begin: 0,
      end: Number(row.bytes),
      isLast: true,
    }
  }
  const files = readFilesOf(row.files)
  const place = files.findIndex(({ end }) => end > position)
  const file = files[place]
  if (file === undefined) return null
  const { name, delimiter, columns, readAs, begin, end } = file
  return {
    inZip: { file: place, name },
    delimiter: delimiter as DelimiterName,
    columns,
    suppressesAs: readAs === 'contacts' ? null : readAs,
    begin,
    end,
    // Empty files behind it have no rows.
    isLast: files.every((other) => other.end <= end),
  }
}
