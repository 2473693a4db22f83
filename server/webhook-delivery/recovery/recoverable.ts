import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Mode, modes } from '../../../contract/mode.ts'
import type { Handle } from '../../database/connection.ts'
import type { Clock } from '../../lib/clock.ts'
import { lastPositionBefore, lastUnpositioned, type PollingPosition, positionsOf } from '../../outbox/positions.ts'
import { queueNow } from '../../queue/queue.ts'
import { firstIdAt } from '../../shared/ids.ts'
import { receives } from '../subscription.ts'

/*
 * What a recovery sends again: of the events in a span of time that the webhook receives as it is now, those that
 * have no delivery to it and those whose delivery failed or was canceled. Events are taken in the order of their
 * positions. The time of an event is the one it states, whatever the clock did afterwards.
 *
 * Events past the retention are left out. Some stay, for the sake of another webhook, when their accepted deliveries
 * to this one are gone already, and then nothing tells them from events that were never sent to it.
 */

/** Events looked at by one statement. */
const pageSize = 1_000

/**
 * How much before the end of its retention an event is left out already: for clocks that differ, and for the time
 * between looking for deliveries and making them. Milliseconds.
 */
function retentionMargin(retentionMs: number): number {
  return Math.min(3_600_000, retentionMs / 10)
}

export type RetentionMeans = {
  clock: Clock
  /** As of `createRetention`. */
  retentionMs: number
}

/** From when on it is known of an event whether it was delivered: `since`, or later. It moves as time goes on. */
export function knownSince(since: Date, { clock, retentionMs }: RetentionMeans): Date {
  return new Date(Math.max(since.getTime(), clock.now().getTime() - retentionMs + retentionMargin(retentionMs)))
}

export type TimeRange = {
  accountId: string
  /** As `knownSince` returns it. */
  since: Date
  /** Exclusive. Null: without an end. */
  until: Date | null
  /** Null: all. */
  types: readonly string[] | null
  /** The last position that is looked at. */
  lastPosition: number
}

type EventInSpan = { id: string; type: string; mode: Mode }

export type PageOfEvents = {
  /** Those in the span. */
  events: EventInSpan[]
  /** The last event looked at. */
  place: PollingPosition
  isLast: boolean
}

type Row = { id: string; type: string | null; mode: Mode | null; created_at: Date | null; position: number }

/** The next events of a span, those from before there were positions first. Samples are not among them. */
export async function nextEvents(handle: Handle, span: TimeRange, after: PollingPosition): Promise<PageOfEvents> {
  const oldest = after.position === 0 ? await unpositioned(handle, span, after.id) : []
  const last = oldest.at(-1)
  if (oldest.length === pageSize && last !== undefined) {
    return { events: inSpan(oldest, span), place: { position: 0, id: last.id }, isLast: false }
  }
  const from =
    after.position === 0
      ? await lastPositionBefore(handle, span.accountId, firstIdAt('event', span.since))
      : after.position
  const rows = await positioned(handle, span, from)
  return {
    events: inSpan([...oldest, ...rows], span),
    place: { position: rows.at(-1)?.position ?? span.lastPosition, id: '' },
    isLast: rows.length < pageSize,
  }
}

function inSpan(rows: readonly Row[], { since, until, types }: TimeRange): EventInSpan[] {
  return rows.flatMap(({ id, type, mode, created_at: at }) => {
    if (type === null || mode === null || at === null || at < since || (until !== null && at >= until)) return []
    return types === null || types.includes(type) ? [{ id, type, mode }] : []
  })
}

async function unpositioned(handle: Handle, { accountId, since }: TimeRange, after: string): Promise<Row[]> {
  const { rows } = await sql<Row>`
    SELECT id, type, mode, created_at, 0 AS position FROM events
    -- In these words only the index by account has the order, whatever the statistics say. And the time in an id is
    -- never before that of the event.
    WHERE (account_id, id) > (${accountId}, ${after}) AND (account_id, id) >= (${accountId}, ${firstIdAt('event', since)})
      AND (account_id, id) <= (${accountId}, ${lastUnpositioned})
      AND NOT sample
      -- OFFSET: one by one along the keys, whatever the statistics say.
      AND NOT EXISTS (SELECT FROM outbox_rows WHERE event_id = events.id OFFSET 0)
      AND NOT EXISTS (SELECT FROM event_positions WHERE event_id = events.id OFFSET 0)
    ORDER BY account_id, id LIMIT ${pageSize}
  `.execute(handle)
  return rows
}

const every = modes.map((mode) => ({ mode, types: 'all' as const }))

async function positioned(handle: Handle, { accountId, lastPosition }: TimeRange, after: number): Promise<Row[]> {
  const { rows } = await sql<Row>`
    SELECT p.event_id AS id, p.position::float8 AS position, e.type, e.mode, e.created_at
    FROM (${positionsOf(accountId, every, { above: after, below: lastPosition + 1, order: 'asc', limit: pageSize })}) p
    -- One by one along the key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT type, mode, created_at FROM events WHERE id = p.event_id OFFSET 0) e ON true
    ORDER BY p.position
  `.execute(handle)
  return rows
}

/** The last position that events of an account have at this moment. */
export async function lastPositionOf(handle: Handle, accountId: string): Promise<number> {
  const { rows } = await sql<{ position: number }>`
    SELECT last_position::float8 AS position FROM event_counters WHERE account_id = ${accountId}
  `.execute(handle)
  return rows[0]?.position ?? 0
}

/** Until it is looked again whether fan-outs have ended. Milliseconds. */
const fanOutLookMs = 20

/**
 * Resolves once no event of the account is on its way that was matched with webhooks before now: one that was matched
 * before its webhook was enabled leaves the webhook out. That is the end of the fan-outs at work, those of other
 * accounts too, and of the leases of the account's events, which end soon or lapse.
 */
export async function awaitFanOuts(handle: Handle, accountId: string): Promise<void> {
  await awaitAll(() => fanOutsAtWork(handle))
  await awaitAll(() => leasedEvents(handle, accountId))
}

/** Resolves once none of those is left that there are now. */
async function awaitAll(find: () => Promise<string[]>): Promise<void> {
  let left = await find()
  while (left.length > 0) {
    await pause(fanOutLookMs)
    const found = new Set(await find())
    left = left.filter((id) => found.has(id))
  }
}

/**
 * The transactions of others that have locked rows of the outbox. A fan-out locks rows before it looks for webhooks, and
 * PostgreSQL lists the tables in which a transaction has locked rows. So the size of the outbox does not matter.
 */
async function fanOutsAtWork(handle: Handle): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    SELECT virtualtransaction AS id FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'outbox_rows'::regclass AND mode = 'RowShareLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
  `.execute(handle)
  return rows.map(({ id }) => id)
}

async function leasedEvents(handle: Handle, accountId: string): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    SELECT event_id AS id FROM outbox_rows
    WHERE account_id = ${accountId} AND lease IS NOT NULL AND leased_until > ${queueNow}
  `.execute(handle)
  return rows.map(({ id }) => id)
}

/** Events looked at, at most, to say at once how many deliveries there will be. */
const countedEvents = 2 * pageSize

/** How many deliveries a recovery would send. Beyond 2,000 events it is what was found among those, and not exact. */
export async function countRecoverable(
  handle: Handle,
  webhook: { id: string; events: readonly string[]; mode: Mode },
  span: TimeRange,
): Promise<{ count: number; isExact: boolean }> {
  let count = 0
  let place: PollingPosition = { position: 0, id: '' }
  for (let looked = 0; looked < countedEvents; looked += pageSize) {
    const page = await nextEvents(handle, span, place)
    const { undelivered, deliveryIds } = await recoverableOf(handle, webhook, page.events)
    count += undelivered.length + deliveryIds.length
    if (page.isLast) return { count, isExact: true }
    place = page.place
  }
  return { count, isExact: false }
}

export type Recoverable = {
  /** Events without a delivery to the webhook. */
  undelivered: EventInSpan[]
  /** Deliveries that failed or were canceled. */
  deliveryIds: string[]
}

/**
 * What is to be sent of a page of events. Events that are still in the outbox are left out: they are about to be
 * fanned out to the webhook.
 */
export async function recoverableOf(
  handle: Handle,
  webhook: { id: string; events: readonly string[]; mode: Mode },
  events: readonly EventInSpan[],
): Promise<Recoverable> {
  const wanted = events.filter((event) => receives(webhook, event))
  if (wanted.length === 0) return { undelivered: [], deliveryIds: [] }
  const ids = wanted.map(({ id }) => id)
  // An id begins with the time it was made at, and nearly all deliveries are made in the same half a minute as their
  // events; the others have an index of their own, as in server/background/retention.ts. One statement, so that it sees one
  // moment: an event leaves the outbox as its deliveries appear.
  const { rows } = await sql<{ event_id: string; id: string | null; status: string }>`
    SELECT d.event_id, d.id, d.status
    FROM (SELECT DISTINCT substr(id, 5, 7) AS moment FROM unnest(${ids}::text[]) AS e (id)) m
    CROSS JOIN LATERAL (
      SELECT id, event_id, status FROM deliveries
      WHERE webhook_id = ${webhook.id} AND id >= 'dlv_' || m.moment AND id < 'dlv_' || m.moment || '~' OFFSET 0
    ) d
    WHERE d.event_id = ANY(${ids}::text[])
    UNION ALL
    SELECT event_id, id, status FROM deliveries
    WHERE event_id = ANY(${ids}::text[]) AND substr(id, 5, 7) <> substr(event_id, 5, 7) AND webhook_id = ${webhook.id}
    UNION ALL
    SELECT event_id, NULL, 'waiting' FROM outbox_rows WHERE event_id = ANY(${ids}::text[])
  `.execute(handle)
  const known = new Set(rows.map((row) => row.event_id))
  return {
    undelivered: wanted.filter(({ id }) => !known.has(id)),
    deliveryIds: rows.flatMap(({ id, status }) =>
      id !== null && (status === 'failed' || status === 'canceled') ? [id] : [],
    ),
  }
}
