import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Clock } from '../clock.ts'
import { plainArray } from '../database/arrays.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { flowName, type Intake } from '../delivery/intake.ts'
import { keepFresh } from '../delivery/keep-fresh.ts'
import type { Claim } from '../delivery/load.ts'
import type { FlowName } from '../delivery/scheduling/scheduler-types.ts'
import { receives } from '../delivery/subscription.ts'
import { newId } from '../ids.ts'
import { type Queue, queueNow } from '../queue/queue.ts'

/** Events taken in one transaction at most. */
const maxEvents = 1_000
/** Deliveries made in one transaction, beyond which no further event is begun. */
const maxDeliveries = 2_000
/** Rows written by one statement. */
const chunkSize = 2_500

type Waiting = {
  event_id: string
  account_id: string
  mode: Mode
  type: string
  body: string | null
  traceparent: string | null
}
type Target = { id: string; account_id: string; mode: Mode; events: string[]; flow: number; host: string }
type NewDelivery = { id: string; event: Waiting; target: Target }

export type FanOutMeans = {
  db: Db
  queue: Queue
  clock: Clock
  /** For deliveries that are kept, for the caller to make. Default: all go into the queue. */
  intake?: Pick<Intake, 'size' | 'destinationOf' | 'reserve'>
}

/** How much was done, and with which events. */
export type FanOut = {
  events: number
  deliveries: number
  eventIds: readonly string[]
  /** The deliveries that are the caller's to make. */
  kept: readonly Claim[]
  /** How many wait in the queue to be claimed, by flow. */
  queued: readonly { name: FlowName; count: number }[]
  /** Whether it took all it may, so that there may be more. */
  isFull: boolean
}

/**
 * Turns one batch of waiting events into deliveries with their jobs, in one transaction: an event
 * leaves the outbox if and only if its deliveries exist. Several workers may do this at once; each
 * event is taken by one of them. Returns how much was done; all counts are 0 when the outbox is empty.
 *
 * What the intake says is best off in hand is kept. An event with a delivery that is best made later stays in the
 * outbox. When this rejects, nothing is the caller's: should the commit have taken place all the same, nobody reports on
 * what is kept, and after a while others make the deliveries.
 */
export async function fanOutBatch({ db, queue, clock, intake }: FanOutMeans): Promise<FanOut> {
  return inTransaction(db, async (trx) => {
    const limit = intake?.size ?? maxEvents
    const waiting = await (intake === undefined ? take(trx, limit) : takeWithBodies(trx, limit))
    if (waiting.length === 0) return { events: 0, deliveries: 0, eventIds: [], kept: [], queued: [], isFull: false }
    const targets = await targetsOf(trx, waiting)
    const now = clock.now()

    const eventIds: string[] = []
    const keeping: NewDelivery[] = []
    const queued = new Map<number, { name: FlowName; count: number }>()
    let deliveries = 0
    let chunk: NewDelivery[] = []
    for (const event of waiting) {
      const receiving = (targets.get(event.account_id) ?? []).filter((target) => receives(target, event))
      if (deliveries >= maxDeliveries) break
      if (receiving.some((target) => intake?.destinationOf(nameOf(target)) === 'later')) continue
      for (const target of receiving) {
        const delivery = { id: newId('delivery', now), event, target }
        const name = nameOf(target)
        deliveries += 1
        if (intake?.destinationOf(name) === 'hand' && event.body !== null) {
          intake.reserve(name)
          keeping.push(delivery)
          continue
        }
        chunk.push(delivery)
        const own = queued.get(target.flow) ?? { name, count: 0 }
        own.count += 1
        queued.set(target.flow, own)
        if (chunk.length === chunkSize) {
          await write(trx, queue, chunk, now)
          chunk = []
        }
      }
      eventIds.push(event.event_id)
    }
    await write(trx, queue, chunk, now)
    const kept = await keep(trx, queue, keeping, now)
    // Last, together with the COMMIT: the events get their positions, for which the accounts' counters stay locked.
    await executePrepared(
      trx,
      { name: 'leave_outbox', sendsWithNext: true },
      trx.deleteFrom('outbox').where('event_id', '=', sql<string>`ANY(${plainArray(eventIds)}::text[])`),
    )
    const isFull = waiting.length === limit || eventIds.length < waiting.length
    return { events: eventIds.length, deliveries, eventIds, kept, queued: [...queued.values()], isFull }
  })
}

function nameOf(target: Target): FlowName {
  return flowName(target.account_id, target)
}

async function take(trx: Trx, limit: number): Promise<Waiting[]> {
  const rows = await executePrepared(
    trx,
    { name: 'take_from_outbox' },
    trx
      .selectFrom('outbox')
      .select(['event_id', 'account_id', 'mode', 'type'])
      .orderBy('event_id')
      .limit(limit)
      .forUpdate()
      .skipLocked(),
  )
  return rows.map((row) => ({ ...row, body: null, traceparent: null }))
}

async function takeWithBodies(trx: Trx, limit: number): Promise<Waiting[]> {
  const statement = sql<Waiting>`
    SELECT o.event_id, o.account_id, o.mode, o.type, e.body, e.traceparent
    FROM (
      SELECT event_id, account_id, mode, type FROM outbox ORDER BY event_id LIMIT ${limit} FOR UPDATE SKIP LOCKED
    ) o
    -- One by one along the key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT body, traceparent FROM events WHERE id = o.event_id OFFSET 0) e ON true
    ORDER BY o.event_id
  `
  return executePrepared(trx, { name: 'take_from_outbox_with_bodies' }, statement)
}

/** The enabled webhooks of the accounts concerned, by account. */
async function targetsOf(trx: Trx, waiting: readonly Waiting[]): Promise<Map<string, Target[]>> {
  const accountIds = [...new Set(waiting.map((event) => event.account_id))]
  const types = [...new Set(waiting.map((event) => event.type))]
  const webhooks = await executePrepared(
    trx,
    { name: 'find_targets' },
    trx
      .selectFrom('webhooks')
      .innerJoin('delivery_flows', 'number', 'flow')
      .select(['webhooks.id', 'webhooks.account_id', 'mode', 'events', 'flow', 'host'])
      .where('webhooks.account_id', '=', sql<string>`ANY(${accountIds}::text[])`)
      .where('status', '=', 'enabled')
      .where('events', '&&', sql<string[]>`${types}::text[]`)
      .orderBy('webhooks.id'),
  )
  return Map.groupBy(webhooks, (webhook) => webhook.account_id)
}

/** Writes deliveries that wait in the queue. */
async function write(trx: Trx, queue: Queue, deliveries: readonly NewDelivery[], now: Date): Promise<void> {
  if (deliveries.length === 0) return
  await insert(trx, deliveries, now)
  await queue.flows.put(
    trx,
    deliveries.map(({ id, target }) => ({ deliveryId: id, flow: target.flow, dueAt: null })),
  )
}

/** Writes deliveries that the caller makes. */
async function keep(trx: Trx, queue: Queue, deliveries: readonly NewDelivery[], now: Date): Promise<Claim[]> {
  if (deliveries.length > 0) await insert(trx, deliveries, now)
  return keepFresh(
    trx,
    queue,
    deliveries.map(({ id, event, target }) => ({
      id,
      accountId: target.account_id,
      webhookId: target.id,
      eventId: event.event_id,
      body: event.body ?? '',
      mode: event.mode,
      traceparent: event.traceparent,
      flow: target.flow,
    })),
  )
}

async function insert(trx: Trx, deliveries: readonly NewDelivery[], now: Date): Promise<void> {
  const insertion = sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, next_attempt_at, created_at)
    SELECT id, account_id, webhook_id, event_id, event_type, ${queueNow}, ${now}
    FROM unnest(
      ${plainArray(deliveries.map(({ id }) => id))}::text[],
      ${plainArray(deliveries.map(({ event }) => event.account_id))}::text[],
      ${plainArray(deliveries.map(({ target }) => target.id))}::text[],
      ${plainArray(deliveries.map(({ event }) => event.event_id))}::text[],
      ${plainArray(deliveries.map(({ event }) => event.type))}::text[]
    ) AS d (id, account_id, webhook_id, event_id, event_type)
  `
  await executePrepared(trx, { name: 'insert_deliveries', sendsWithNext: true }, insertion)
}
