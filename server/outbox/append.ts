import { type EventData, type EventTypeName, eventType } from '../../contract/event-types.ts'
import { afterCommit, type Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import { createLoneEvents } from '../fan-out/lone-events.ts'
import type { Clock } from '../lib/clock.ts'
import type { Tracer } from '../observability/tracing/tracer.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { leaseSeconds } from '../webhook-delivery/settlement/leased-event.ts'
import type { Leasing } from '../webhook-delivery/worker.ts'

/** An event about to be appended, of any type. */
export type NewEvent = { [T in EventTypeName]: { type: T; data: EventData<T> } }[EventTypeName]

export type Outbox = {
  /**
   * Writes events into the transaction that causes them: they exist if and only if it commits, and
   * are fanned out in the order given. The body is serialised here, once; it is sent and signed as
   * stored. Returns the ids.
   *
   * Throws a ZodError when `data` does not have the shape the contract publishes, which undoes the
   * transaction: nothing unpublished is ever sent.
   *
   * @param scope The account, and the mode of what caused the events.
   */
  append(trx: Trx, scope: Scope, events: readonly NewEvent[]): Promise<string[]>
}

/** Builds the body of an event: the bytes every receiver gets. Throws as `append` does. */
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
  /** Null: none. */
  lease: string | null
  traceparent: string | null
  leaseSeconds: number
  ids: readonly string[]
  types: readonly string[]
  bodies: readonly string[]
}

const insertEvents = prepare<EventRows>({ name: 'insert_events', sendsWithNext: true })`
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

export type OutboxOptions = {
  clock: Clock
  /** Called after a commit that appended something: there is work for the fan-out. */
  wake: () => void
  /** Called with what is appended; returns the `traceparent` to keep with it. Default: none is kept. */
  trace?: (events: readonly { id: string; type: string }[]) => string | null
  /** Has events delivered from here, without the fan-out, where that is likely to be at once. Default: none are. */
  leasing?: Leasing
  /** Records what becomes of events that are delivered so. Default: nothing is recorded. */
  tracer?: Tracer
}

export function createOutbox({ clock, wake, trace = () => null, leasing, tracer }: OutboxOptions): Outbox {
  const lone = leasing === undefined ? null : createLoneEvents({ clock, leasing, tracer })

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
      const lease = lone?.lease(trx, { accountId, count: rows.length }) ?? null
      await insertEvents(trx, { accountId, mode, at, traceparent, lease, leaseSeconds, ids, types, bodies })
      if (lease === null) afterCommit(trx, wake)
      else
        await lone?.add(
          trx,
          rows.map((row) => ({ ...row, accountId, mode, traceparent })),
        )
      return ids
    },
  }
}
