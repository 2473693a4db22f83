import type { Generated } from 'kysely'

/** Every event ever emitted and not yet past retention. Rows are never updated. */
export type EventsTable = {
  id: string
  account_id: string
  type: string
  /** The JSON text that is sent and signed: made once. */
  body: string
  /** Whether it was made up for a test delivery. */
  sample: Generated<boolean>
  created_at: Date
  /** The trace it was appended in, as the header of W3C Trace Context has it; null: in none that is recorded. */
  traceparent: string | null
}

/** The events that still await their fan-out. A row lives for milliseconds. */
export type OutboxTable = {
  event_id: string
  account_id: string
  type: string
}
