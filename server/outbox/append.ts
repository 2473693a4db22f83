import { type EventData, type EventTypeName, eventType } from '../../contract/event-types.ts'
import { afterCommit, type Trx } from '../database/connection.ts'
import { type Preparation, prepare } from '../database/prepared.ts'
import type { Clock } from '../lib/clock.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'

/** An event to be appended, of any type. */
export type NewEvent = { [T in EventTypeName]: { type: T; data: EventData<T> } }[EventTypeName]

export type Outbox = {
  /**
   * Writes events in the transaction that causes them: they exist if and only if it commits, and are fanned out in the
   * given order. The body is serialized here, once; it is sent and signed as stored. Returns the ids.
   *
   * Throws a ZodError when `data` does not match the published contract. That rolls the transaction back, so nothing
   * unpublished is ever sent.
   *
   * @param scope The account, and the mode of what caused the events.
   */
  append(trx: Trx, scope: Scope, events: readonly NewEvent[]): Promise<string[]>
}

/** Builds the body of an event: the bytes that every receiver gets. Throws like `append`. */
function eventBody(id: string, event: NewEvent, at: Date): string {
  const definition = eventType(event.type)
  return JSON.stringify({
    id,
    type: event.type,
    [definition.timeField]: at.toISOString(),
    data: definition.data.parse(event.data),
  })
}

type EventRows = Scope & {
  at: Date
  /** Null: the event is not leased. */
  lease: string | null
  traceparent: string | null
  leaseSeconds: number
  ids: readonly string[]
  types: readonly string[]
  bodies: readonly string[]
}

const insertion = (preparation: Preparation) => prepare<EventRows>(preparation)`
  WITH event AS (
    INSERT INTO events (id, account_id, mode, type, body, created_at, traceparent)
    SELECT id, ${'accountId'}, ${'mode'}, type, body, ${'at'}, ${'traceparent'}
    FROM unnest(${'ids'}::text[], ${'types'}::text[], ${'bodies'}::text[]) AS e (id, type, body)
    RETURNING id, account_id, mode, type
  )
  INSERT INTO outbox_rows (event_id, account_id, mode, type, lease, leased_until)
  SELECT id, account_id, mode, type, ${'lease'}::uuid, CASE WHEN ${'lease'}::uuid IS NULL THEN '-infinity'
    ELSE lease_time() + make_interval(secs => ${'leaseSeconds'}) END
  FROM event
`

const insertEvents = insertion({ name: 'insert_events', sendsWithNext: true })

/** From so many events on, PostgreSQL inserts them while the transaction goes on. */
const manyEvents = 100
const insertManyEvents = insertion({ name: 'insert_many_events', sendsAhead: true })

/** An event in the outbox, with the fields that its deliveries need. */
export type OutboxEvent = Scope & {
  id: string
  type: string
  body: string
  traceparent: string | null
}

/** Duration of a lease. Other processes take the events of a process that died after this time. Seconds. */
export const leaseSeconds = 20

/** Delivers events from the process that appends them, without a fan-out. */
export type LoneEvents = {
  /** Returns the lease for the next events of a transaction. Null: they are left to the fan-out. */
  lease(trx: Trx, next: { accountId: string; count: number }): string | null
  /** Starts the deliveries of events after the transaction has committed. The events were inserted with their lease. */
  add(trx: Trx, events: readonly OutboxEvent[]): Promise<void>
}

export type OutboxOptions = {
  clock: Clock
  /** Called after a commit with new events for the fan-out. */
  wake: () => void
  /** Called with the new events; returns the `traceparent` to store with them. Default: stores none. */
  trace?: (events: readonly { id: string; type: string }[]) => string | null
  /**
   * Delivers events from this process, without the fan-out, if their deliveries can probably start at once. Default:
   * all events go through the fan-out.
   */
  loneEvents?: LoneEvents
}

export function createOutbox({ clock, wake, trace = () => null, loneEvents }: OutboxOptions): Outbox {
  return {
    async append(trx, { accountId, mode }, events) {
      if (events.length === 0) return []
      const at = clock.now()
      const rows = events.map((event) => {
        const id = newId('event', at)
        return { id, type: event.type, body: eventBody(id, event, at) }
      })
      const ids = rows.map((row) => row.id)
      const types = rows.map((row) => row.type)
      const bodies = rows.map((row) => row.body)
      const traceparent = trace(rows)
      const lease = loneEvents?.lease(trx, { accountId, count: rows.length }) ?? null
      const insert = rows.length < manyEvents ? insertEvents : insertManyEvents
      await insert(trx, { accountId, mode, at, traceparent, lease, leaseSeconds, ids, types, bodies })
      if (lease === null) afterCommit(trx, wake)
      else
        await loneEvents?.add(
          trx,
          rows.map((row) => ({ ...row, accountId, mode, traceparent })),
        )
      return ids
    },
  }
}
