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
 * Finds what a recovery sends again: of the events in a time range that the webhook, as it is now, receives, those that
 * have no delivery to it and those whose delivery failed or was canceled. Events are taken in the order of their
 * positions. The time of an event is its `created_at`, whatever the clock did afterwards.
 *
 * Events older than the retention are left out. Some of them are kept because of another webhook, while their succeeded
 * deliveries to this one are deleted already: they look like events that were never sent to it.
 */

/** Events read by one statement. */
const pageSize = 1_000

/**
 * Returns how long before the end of its retention an event is left out. The margin covers clocks that differ, and the
 * time between finding events and writing their deliveries. Milliseconds.
 */
function retentionMargin(retentionMs: number): number {
  return Math.min(3_600_000, retentionMs / 10)
}

export type RetentionMeans = {
  clock: Clock
  /** The retention as `createRetention` uses it. Milliseconds. */
  retentionMs: number
}

/** Returns `since`, or the later time from which deliveries are certain to be kept. That time moves with the clock. */
export function knownSince(since: Date, { clock, retentionMs }: RetentionMeans): Date {
  return new Date(Math.max(since.getTime(), clock.now().getTime() - retentionMs + retentionMargin(retentionMs)))
}

export type TimeRange = {
  accountId: string
  /** A result of `knownSince`. */
  since: Date
  /** Exclusive. Null: no end. */
  until: Date | null
  /** Null: all types. */
  types: readonly string[] | null
  /** The last position to look at. */
  lastPosition: number
}

type EventInSpan = { id: string; type: string; mode: Mode }

export type PageOfEvents = {
  /** Events in the time range. */
  events: EventInSpan[]
  /** The place of the last event looked at. */
  place: PollingPosition
  isLast: boolean
}

type Row = { id: string; type: string | null; mode: Mode | null; created_at: Date | null; position: number }

/**
 * Returns the next events of a range. Events without a position, from before positions existed, come first. Samples are
 * left out.
 */
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
    -- Written as row comparisons, so that only the index by account has this order, whatever the statistics say. The
    -- time in an id is never before that of the event.
    WHERE (account_id, id) > (${accountId}, ${after}) AND (account_id, id) >= (${accountId}, ${firstIdAt('event', since)})
      AND (account_id, id) <= (${accountId}, ${lastUnpositioned})
      AND NOT sample
      -- OFFSET 0 makes the planner look up each row by its key, whatever the statistics say.
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
    -- OFFSET 0 makes the planner look up each event by its primary key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT type, mode, created_at FROM events WHERE id = p.event_id OFFSET 0) e ON true
    ORDER BY p.position
  `.execute(handle)
  return rows
}

/** Returns the current last position of an account's events. */
export async function lastPositionOf(handle: Handle, accountId: string): Promise<number> {
  const { rows } = await sql<{ position: number }>`
    SELECT last_position::float8 AS position FROM event_counters WHERE account_id = ${accountId}
  `.execute(handle)
  return rows[0]?.position ?? 0
}

/** Milliseconds between two checks whether fan-outs have ended. */
const fanOutLookMs = 20

/**
 * Waits until all fan-outs that may have matched events with webhooks before now have ended: such a match leaves out a
 * webhook that was enabled since. It waits for the running fan-outs, of other accounts too, and for the leases of the
 * account's events, which end soon or lapse.
 */
export async function awaitFanOuts(handle: Handle, accountId: string): Promise<void> {
  await awaitAll(() => fanOutsAtWork(handle))
  await awaitAll(() => leasedEvents(handle, accountId))
}

/** Waits until none of the current results of `find` is left. */
async function awaitAll(find: () => Promise<string[]>): Promise<void> {
  let left = await find()
  while (left.length > 0) {
    await pause(fanOutLookMs)
    const found = new Set(await find())
    left = left.filter((id) => found.has(id))
  }
}

/**
 * Returns the other transactions that have locked rows of the outbox. A fan-out locks rows before it looks for
 * webhooks, and pg_locks lists the tables in which a transaction has locked rows. So the cost does not grow with the
 * outbox.
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

/** Maximum number of events looked at to count the deliveries in advance. */
const countedEvents = 2 * pageSize

/**
 * Counts the deliveries that a recovery would send. It looks at 2,000 events at most; beyond that the count is a lower
 * bound and `isExact` is false.
 */
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
 * Returns what to send of a page of events. Events that are still in the outbox are left out: the fan-out is about to
 * send them to the webhook.
 */
export async function recoverableOf(
  handle: Handle,
  webhook: { id: string; events: readonly string[]; mode: Mode },
  events: readonly EventInSpan[],
): Promise<Recoverable> {
  const wanted = events.filter((event) => receives(webhook, event))
  if (wanted.length === 0) return { undelivered: [], deliveryIds: [] }
  const ids = wanted.map(({ id }) => id)
  // An id begins with its creation time, and nearly all deliveries are created within half a minute of their events.
  // The others are found by an index of their own, as in server/background/retention.ts. One statement reads one
  // snapshot: an event leaves the outbox in the same commit in which its deliveries appear.
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
