import type { Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** Every event that is not yet past its retention. Rows are never updated. */
export type EventsTable = {
  id: string
  account_id: string
  type: string
  /** The mode of what caused the event. */
  mode: Generated<Mode>
  /** The JSON text that is sent and signed. It is written once. */
  body: string
  /** True for an event that was made up for a test. */
  sample: Generated<boolean>
  created_at: Date
  /** The trace that the event was appended in, as a W3C Trace Context header. Null: it is not traced. */
  traceparent: string | null
}

/** The events whose deliveries are not written yet. A row lives for milliseconds. */
export type OutboxRowsTable = OutboxView & {
  /** The process that delivers the event. Null: none does. */
  lease: Generated<string | null>
  /** When the lease lapses. Until then other processes leave the event alone. */
  leased_until: Generated<Date>
}

/** Events that are not leased: processes of the previous version read and write this view. */
export type OutboxView = {
  event_id: string
  account_id: string
  type: string
  mode: Generated<Mode>
  /** True when the event has its position, so that pollers can skip the row. */
  positioned: Generated<boolean>
}

/** The last position of each account. Giving positions locks the row until the commit. */
export type EventCountersTable = {
  account_id: string
  /** A bigint. */
  last_position: string
  reached: string
  /** The value of `reached` before the latest positions were given. */
  reached_before: Generated<string>
}

/**
 * The place of each event in the order of polling. A trigger writes it when the event leaves the outbox, or a poller
 * before that. Rows are never updated. See `server/outbox/positions.ts`.
 */
export type EventPositionsTable = {
  account_id: string
  mode: Mode
  type: string
  /** A bigint from 1, within the account; with gaps. A higher position always commits later. */
  position: string
  event_id: string
  /** No event up to this position has an id of a later millisecond. The value is characters 5 to 14 of an id. */
  reached: string
}
