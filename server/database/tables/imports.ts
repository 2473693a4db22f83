import type { ColumnType, Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** A count: `pg` reads a bigint as text. */
type Count = ColumnType<string, number | undefined, number>

export type ImportColumn = { column: string; field: string }

export type ImportsTable = {
  account_id: string
  id: string
  mode: Mode
  audience_id: string
  file_name: string | null
  status: 'uploading' | 'waiting' | 'running' | 'completed' | 'failed' | 'canceled'
  conflict: 'update' | 'skip'
  contact_status: 'active' | 'unsubscribed'
  emits_events: boolean
  delimiter: string
  encoding: string
  /** What all rows of the file are, as its head says. Null: nothing special. */
  suppresses_as: 'unsubscribe' | 'hard_bounce' | null
  /** The columns of the file in order. Written as JSON text. */
  columns: ColumnType<ImportColumn[], string, string>
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

export type ImportFailuresTable = {
  account_id: string
  import_id: string
  row_number: Count
  reason: string
  cells: string[]
}
