import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { plainArray } from '../database/arrays.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { Clock } from '../lib/clock.ts'
import { leaseSeconds } from '../outbox/append.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import type { DueDelivery } from '../webhook-delivery/load-deliveries.ts'
import type { Reservation } from '../webhook-delivery/scheduling/intake.ts'
import type { FlowName } from '../webhook-delivery/scheduling/scheduler-types.ts'
import type { LeasedEvent } from '../webhook-delivery/settlement/leased-event.ts'
import { receiversOf, toLeasedEvent } from './matching.ts'
import { findTargets } from './targets.ts'

/** Maximum number of events that one statement looks at. A fan-out takes a few round trips, however many they are. */
const maxEvents = 1_000
/** No further event is begun once a transaction has this many deliveries. */
const maxDeliveries = 2_000
/** Maximum number of rows written by one statement. */
const chunkSize = 2_500

type OutboxRow = {
  event_id: string
  account_id: string
  mode: Mode
  type: string
  body: string | null
  traceparent: string | null
}

export type FanOutMeans = {
  db: Db
  queue: Queue
  clock: Clock
  /** Lets the worker take events into memory. Default: all deliveries go into the queue. */
  taking?: {
    /** Decides where deliveries go. */
    intake: Pick<Reservation, 'after' | 'limits' | 'destinationOf'>
    lease: string
    /** Returns true if the worker still has the event: its lease has lapsed and is renewed. */
    isOpen: (eventId: string) => boolean
  }
}

/** The result of one batch. */
export type FanOut = {
  events: number
  deliveries: number
  eventIds: readonly string[]
  /** Leased events: the caller makes their deliveries. */
  leased: readonly LeasedEvent[]
  /** Deliveries put into the queue, by flow. */
  queued: readonly { name: FlowName; count: number }[]
  /** The last event that was looked at. Null: the batch reached the end of the outbox. */
  last: string | null
  /** True if some of the events that were looked at stay there, and this process may take them later. */
  rest: boolean
}

/**
 * Takes one batch of waiting events, in one transaction. An event whose deliveries should all be in memory is leased:
 * it stays in the outbox until they are written. An event with a delivery that should be made later stays there without
 * a lease. For all others, deliveries and jobs are written, and the events leave the outbox. Several workers may do
 * this at the same time; each event is taken by one of them. All counts are 0 when nothing waits.
 *
 * If this rejects, the caller must not deliver anything. Should the commit have succeeded nevertheless, the leases
 * lapse and another process makes the deliveries.
 */
export async function fanOutBatch({ db, queue, clock, taking }: FanOutMeans): Promise<FanOut> {
  return inTransaction(db, async (trx) => {
    const { rows: waiting, ...looked } = await takeBatch(trx, taking?.intake ?? { after: '', limits: [] })
    if (waiting.length === 0) return { ...nothing, ...looked }
    const targets = await findTargets(trx, waiting)
    const now = clock.now()

    const leaving: string[] = []
    const renewed: string[] = []
    const leased: LeasedEvent[] = []
    const queued = new Map<string, { name: FlowName; count: number }>()
    let deliveries = 0
    let { last, rest } = looked
    let chunk: NewDelivery[] = []
    for (const [index, row] of waiting.entries()) {
      if (deliveries >= maxDeliveries) {
        last = waiting[index - 1]?.event_id ?? null
        break
      }
      // The row is locked, so the event stays in the outbox meanwhile.
      if (taking?.isOpen(row.event_id)) {
        renewed.push(row.event_id)
        continue
      }
      const waitingEvent = toEvent(row)
      const receivers = receiversOf(waitingEvent, targets)
      const names = receivers.map((target) => target.flowName)
      const destination = row.body === null ? 'queue' : (taking?.intake.destinationOf(waitingEvent, names) ?? 'queue')
      if (destination === 'later') {
        rest = true
        continue
      }
      const event = toLeasedEvent(waitingEvent, receivers, now)
      deliveries += names.length
      if (destination === 'hand' && names.length > 0) {
        leased.push(event)
        continue
      }
      leaving.push(event.id)
      for (const name of names) {
        const own = queued.get(name.flow) ?? { name, count: 0 }
        own.count += 1
        queued.set(name.flow, own)
      }
      for (const delivery of event.deliveries) {
        chunk.push({ delivery, event })
        if (chunk.length < chunkSize) continue
        await write(trx, queue, chunk)
        chunk = []
      }
    }
    await write(trx, queue, chunk)
    if (leased.length + renewed.length > 0 && taking !== undefined) {
      await lease(trx, [...idsOf(leased), ...renewed], taking.lease)
    }
    // Last, together with the COMMIT: leaving events get their positions, and from then on the accounts' counters are
    // locked.
    if (leaving.length > 0) await leave(trx, leaving)
    const eventIds = [...leaving, ...idsOf(leased)]
    return { events: eventIds.length, deliveries, eventIds, leased, queued: [...queued.values()], last, rest }
  })
}

const nothing: FanOut = {
  events: 0,
  deliveries: 0,
  eventIds: [],
  leased: [],
  queued: [],
  last: null,
  rest: false,
}

type NewDelivery = { delivery: DueDelivery; event: LeasedEvent }

function idsOf(events: readonly LeasedEvent[]): string[] {
  return events.map(({ id }) => id)
}

function toEvent({ event_id: id, account_id: accountId, mode, type, body, traceparent }: OutboxRow) {
  return { id, accountId, mode, type, body: body ?? '', traceparent }
}

type Reading = Pick<Reservation, 'after' | 'limits'>
type Page = Pick<FanOut, 'last' | 'rest'> & { rows: OutboxRow[] }

/** Takes a batch of events: from one page, or from the next ones where other transactions have locked most of it. */
async function takeBatch(trx: Trx, { after, limits }: Reading): Promise<Page> {
  const rows: OutboxRow[] = []
  for (let from = after; ; ) {
    const page = await take(trx, { after: from, limits })
    rows.push(...page.rows)
    if (2 * rows.length >= maxEvents || page.rest || page.last === null) return { ...page, rows }
    from = page.last
  }
}

/**
 * Locks and reads the first events after `after` that no other transaction has locked, of each kind no more than its
 * limit. Events that others have locked do not count for `rest`.
 */
async function take(trx: Trx, { after, limits }: Reading): Promise<Page> {
  const statement = sql<OutboxRow & Pick<FanOut, 'last' | 'rest'>>`
    WITH present AS MATERIALIZED (SELECT ${queueNow} AS now), page AS MATERIALIZED (
      SELECT event_id, account_id, mode, type FROM outbox_rows, present
      WHERE event_id > ${after} AND leased_until <= present.now ORDER BY event_id LIMIT ${maxEvents}
    ), kinds AS MATERIALIZED (
      SELECT l.max, array_agg(p.event_id ORDER BY p.event_id) AS ids
      FROM page p LEFT JOIN unnest(
        ${plainArray(limits.map(({ accountId }) => accountId))}::text[],
        ${plainArray(limits.map(({ mode }) => mode))}::text[],
        ${plainArray(limits.map(({ type }) => type))}::text[],
        ${plainArray(limits.map(({ max }) => max))}::bigint[]
      ) WITH ORDINALITY AS l (account_id, mode, type, max, kind) USING (account_id, mode, type)
      GROUP BY l.kind, l.max
    ), taken AS MATERIALIZED (
      -- Rows that others have locked do not count for the limit.
      SELECT o.* FROM kinds CROSS JOIN LATERAL (
        SELECT event_id, account_id, mode, type FROM outbox_rows
        WHERE event_id = ANY(kinds.ids) AND leased_until <= (SELECT now FROM present)
        ORDER BY event_id LIMIT kinds.max FOR UPDATE SKIP LOCKED
      ) o
    ), looked AS (
      SELECT CASE WHEN sum(cardinality(ids)) = ${maxEvents} THEN max(ids[cardinality(ids)]) END AS last,
        coalesce(bool_or(cardinality(ids) > max AND (max = 0 OR EXISTS (SELECT FROM taken))), false) AS rest
      FROM kinds
    )
    SELECT looked.last, looked.rest, o.event_id, o.account_id, o.mode, o.type, e.body, e.traceparent
    FROM looked LEFT JOIN taken o ON true
    -- OFFSET 0 makes the planner look up each event by its primary key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT body, traceparent FROM events WHERE id = o.event_id OFFSET 0) e ON true
    ORDER BY o.event_id
  `
  const rows = await executePrepared(trx, { name: 'take_from_outbox' }, statement)
  const [first] = rows
  // One row without an event, if there is none.
  return {
    rows: rows.filter(({ event_id }) => event_id !== null),
    last: first?.last ?? null,
    rest: first?.rest ?? false,
  }
}

async function lease(trx: Trx, eventIds: readonly string[], lessee: string): Promise<void> {
  const statement = sql`
    UPDATE outbox_rows SET lease = ${lessee}::uuid, leased_until = ${queueNow} + make_interval(secs => ${leaseSeconds})
    WHERE event_id = ANY(${plainArray(eventIds)}::text[])
  `
  await executePrepared(trx, { name: 'lease_from_outbox', sendsWithNext: true }, statement)
}

async function leave(trx: Trx, eventIds: readonly string[]): Promise<void> {
  await executePrepared(
    trx,
    { name: 'leave_outbox', sendsWithNext: true },
    trx.deleteFrom('outbox_rows').where('event_id', '=', sql<string>`ANY(${plainArray(eventIds)}::text[])`),
  )
}

/** Writes deliveries that wait in the queue, with their jobs. */
async function write(trx: Trx, queue: Queue, deliveries: readonly NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return
  const insertion = sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, next_attempt_at, created_at)
    SELECT id, account_id, webhook_id, event_id, event_type, ${queueNow}, created_at
    FROM unnest(
      ${plainArray(deliveries.map(({ delivery }) => delivery.id))}::text[],
      ${plainArray(deliveries.map(({ delivery }) => delivery.accountId))}::text[],
      ${plainArray(deliveries.map(({ delivery }) => delivery.webhookId))}::text[],
      ${plainArray(deliveries.map(({ event }) => event.id))}::text[],
      ${plainArray(deliveries.map(({ event }) => event.type))}::text[],
      ${plainArray(deliveries.map(({ event }) => event.createdAt.toISOString()))}::timestamptz[]
    ) AS d (id, account_id, webhook_id, event_id, event_type, created_at)
  `
  await executePrepared(trx, { name: 'insert_deliveries', sendsWithNext: true }, insertion)
  await queue.flows.put(
    trx,
    deliveries.map(({ delivery }) => ({ deliveryId: delivery.id, flow: delivery.webhook.flow, dueAt: null })),
  )
}
