import type { ColumnType, Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** A count: `pg` reads a bigint as text. */
type Count = ColumnType<string, number | undefined, number>

export type ImportColumn = { column: string; field: string }

/** A CSV file of a ZIP. Its rows, without the head, are the bytes from `begin` to `end` of the import. */
export type ImportedFile = {
  /** Its name in the ZIP, for people. */
  name: string
  /** The kind of all its rows, unless a column says more. */
  readAs: 'contacts' | 'unsubscribe' | 'hard_bounce'
  delimiter: string
  encoding: string
  columns: ImportColumn[]
  begin: number
  end: number
}

/** A file of a ZIP that is not read, and why, for people. */
export type IgnoredFile = { name: string; readAs: 'ignored'; reason: string }

export type ImportsTable = {
  account_id: string
  id: string
  mode: Mode
  audience_id: string
  file_name: string | null
  status: 'uploading' | 'waiting' | 'running' | 'completed' | 'failed' | 'canceled'
  conflict: 'update' | 'skip'
  contact_status: 'active' | 'unsubscribed' | 'pending'
  /** Topics that its people are subscribed to. */
  topic_ids: Generated<string[]>
  emits_events: boolean
  delimiter: string
  encoding: string
  /** The suppression of all rows of the file, according to its head. Null: the rows are contacts. */
  suppresses_as: 'unsubscribe' | 'hard_bounce' | null
  /** The columns of the file in order. Written as JSON text. */
  columns: ColumnType<ImportColumn[], string, string>
  /**
   * Of a ZIP: its files in the order in which they are read, then those that are not. Null: it is one CSV file. Written
   * as JSON text.
   */
  files: ColumnType<(ImportedFile | IgnoredFile)[] | null, string | undefined, string | null>
  /** Rows that are done of the file before `position`: of a ZIP, where a file begins there, of the one that ends. */
  file_rows_read: Count
  /** Of the file in UTF-8. */
  bytes: Count
  /** Bytes that are done. */
  position: Count
  rows_read: Count
  rows_created: Count
  rows_updated: Count
  rows_skipped: Count
  rows_suppressed: Count
  rows_failed: Count
  failure_reason: string | null
  created_at: Date
  started_at: Date | null
  ended_at: Date | null
  lease: string | null
  leased_until: Generated<Date>
  worked_at: Date
}

export type ImportChunksTable = {
  account_id: string
  import_id: string
  /** Of its first byte in the file. */
  position: Count
  bytes: Buffer
}

/** A ZIP as it was sent, until its files are unpacked into `import_chunks`. */
export type ImportZipChunksTable = ImportChunksTable

export type ImportFailuresTable = {
  account_id: string
  import_id: string
  row_number: Count
  reason: string
  cells: string[]
  /** Of a ZIP: the place of the file in `files`. Null: it is one CSV file. */
  file: number | null
  /** Of a ZIP: the number of the row in its file. */
  file_row: ColumnType<string | null, number | null, number | null>
}
