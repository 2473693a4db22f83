import type { Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** Every event ever emitted and not yet past retention. Rows are never updated. */
export type EventsTable = {
  id: string
  account_id: string
  type: string
  /** That of what caused it. */
  mode: Generated<Mode>
  /** The JSON text that is sent and signed: made once. */
  body: string
  /** Whether it was made up for a test delivery. */
  sample: Generated<boolean>
  created_at: Date
  /** The trace it was appended in, as the header of W3C Trace Context has it; null: in none that is recorded. */
  traceparent: string | null
}

/** The events whose deliveries are not written down yet. A row lives for milliseconds. */
export type OutboxRowsTable = OutboxView & {
  /** The process that makes its deliveries; null: none does. */
  lease: Generated<string | null>
  /** When the lease lapses: until then other processes leave the event alone. */
  leased_until: Generated<Date>
}

/** Those that are not leased: what processes of the version before see and fill. */
export type OutboxView = {
  event_id: string
  account_id: string
  type: string
  mode: Generated<Mode>
  /** Whether pollers need not look at it any more, since it has its position. */
  positioned: Generated<boolean>
}

/** The last position of each account. Locked until the commit by whoever gives positions. */
export type EventCountersTable = {
  account_id: string
  /** A bigint. */
  last_position: string
  reached: string
  /** What `reached` was before the positions that were given last. */
  reached_before: Generated<string>
}

/**
 * Where each event stands in the order of polling. Written when the event leaves the outbox, by a trigger, or before
 * that for a poller; never updated. See `server/outbox/positions.ts`.
 */
export type EventPositionsTable = {
  account_id: string
  mode: Mode
  type: string
  /** A bigint from 1, within the account; some are left out. A later one always commits later. */
  position: string
  event_id: string
  /** No event up to this position has an id of a later millisecond: characters 5 to 14 of an id. */
  reached: string
}
