import { type EventData, type EventTypeName, eventType } from '../../contract/event-types.ts'
import type { Clock } from '../clock.ts'
import { afterCommit, type Trx } from '../database/connection.ts'
import { hasBegun } from '../database/driver.ts'
import { prepare } from '../database/prepared.ts'
import { newId } from '../ids.ts'

/** An event about to be appended, of any type. */
export type NewEvent = { [T in EventTypeName]: { type: T; data: EventData<T> } }[EventTypeName]

export type Outbox = {
  /**
   * Writes events into the transaction that causes them: they exist if and only if it commits, and
   * are fanned out in the order given. The body is serialised here, once; it is sent and signed as
   * stored. Answers the ids.
   *
   * Throws a ZodError when `data` does not have the shape the contract publishes, which undoes the
   * transaction: nothing unpublished is ever sent.
   */
  append(trx: Trx, accountId: string, events: readonly NewEvent[]): Promise<string[]>
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

type EventRows = {
  accountId: string
  at: Date
  traceparent: string | null
  ids: readonly string[]
  types: readonly string[]
  bodies: readonly string[]
}

const insertEvents = prepare<EventRows>({ name: 'insert_events', sendsWithNext: true })`
  WITH event AS (
    INSERT INTO events (id, account_id, type, body, created_at, traceparent)
    SELECT id, ${'accountId'}, type, body, ${'at'}, ${'traceparent'}
    FROM unnest(${'ids'}::text[], ${'types'}::text[], ${'bodies'}::text[]) AS e (id, type, body)
    RETURNING id, account_id, type
  )
  INSERT INTO outbox (event_id, account_id, type) SELECT id, account_id, type FROM event
`

export type OutboxOptions = {
  clock: Clock
  /** Called after a commit that appended something: there is work for the fan-out. */
  wake: () => void
  /** Told of what is appended. Answers the `traceparent` to keep with it. Default: none is kept. */
  trace?: (events: readonly { id: string; type: string }[]) => string | null
}

export function createOutbox({ clock, wake, trace = () => null }: OutboxOptions): Outbox {
  return {
    async append(trx, accountId, events) {
      if (events.length === 0) return []
      // Who polls waits for transactions that have begun: no identifier may be made before.
      await hasBegun(trx)
      const at = clock.now()
      const rows = events.map((event) => {
        const id = newId('event', at)
        return { id, type: event.type, body: eventBody(id, event, at) }
      })
      const ids = rows.map((row) => row.id)
      const types = rows.map((row) => row.type)
      const bodies = rows.map((row) => row.body)
      await insertEvents(trx, { accountId, at, traceparent: trace(rows), ids, types, bodies })
      afterCommit(trx, wake)
      return ids
    },
  }
}
