import { sql } from 'kysely'
import { plainArray } from '../database/arrays.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { Clock } from '../lib/clock.ts'
import { leaseSeconds } from '../outbox/append.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import type { DueDelivery } from '../webhook-delivery/load-deliveries.ts'
import { keyOfKind, type Looked, type Reservation } from '../webhook-delivery/scheduling/intake.ts'
import type { FlowName } from '../webhook-delivery/scheduling/scheduler-types.ts'
import type { LeasedEvent } from '../webhook-delivery/settlement/leased-event.ts'
import { receiversOf, toLeasedEvent } from './matching.ts'
import { type Batch, kindOf, type OutboxRow, takeEvents } from './take-events.ts'
import { findTargets } from './targets.ts'

/** No further event is begun once a transaction has this many deliveries. */
const maxDeliveries = 2_000
/**
 * In a batch by kind, each kind of an account has an equal part of so many deliveries. No further event of the kind is
 * begun once it has that.
 */
const maxOfAccount = 100
/** Maximum number of rows written by one statement. */
const chunkSize = 2_500

export type FanOutMeans = {
  db: Db
  queue: Queue
  clock: Clock
  /** Lets the worker take events into memory. Default: all deliveries go into the queue. */
  taking?: {
    /** Decides where deliveries go. */
    intake: Pick<Reservation, 'reading' | 'limits' | 'destinationOf'>
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
} & Pick<Batch, 'looked' | 'rest'>

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
    const { rows: waiting, ...read } = await takeEvents(
      trx,
      taking?.intake ?? { reading: { from: 'front' }, limits: [] },
    )
    if (waiting.length === 0) return { ...nothing, ...read }
    const targets = await findTargets(trx, waiting)
    const now = clock.now()

    const leaving: string[] = []
    const renewed: string[] = []
    const leased: LeasedEvent[] = []
    const queued = new Map<string, { name: FlowName; count: number }>()
    let deliveries = 0
    let { looked, rest } = read
    const turns = createKindTurns(looked, waiting)
    let chunk: NewDelivery[] = []
    for (const [index, row] of waiting.entries()) {
      if (deliveries >= maxDeliveries || targets.isFull(row.account_id)) {
        const last = waiting[index - 1]
        if (last !== undefined) looked = upTo(last, looked)
        break
      }
      if (turns.isOver(row)) continue
      // The row is locked, so the event stays in the outbox meanwhile.
      if (taking?.isOpen(row.event_id)) {
        renewed.push(row.event_id)
        continue
      }
      const waitingEvent = toEvent(row)
      const ofAccount = targets.of(row.account_id)
      const receivers = receiversOf(waitingEvent, ofAccount instanceof Promise ? await ofAccount : ofAccount)
      const names = receivers.map((target) => target.flowName)
      const destination = row.body === null ? 'queue' : (taking?.intake.destinationOf(waitingEvent, names) ?? 'queue')
      if (destination === 'later') {
        rest = true
        continue
      }
      const event = toLeasedEvent(waitingEvent, receivers, now)
      deliveries += names.length
      turns.count(names.length)
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
    return {
      events: eventIds.length,
      deliveries,
      eventIds,
      leased,
      queued: [...queued.values()],
      looked: turns.end(looked),
      rest,
    }
  })
}

/**
 * Ends the turn of a kind once it has its share of `maxOfAccount` deliveries, in a batch that reads by kind: each event
 * may have a thousand.
 */
function createKindTurns({ from }: Looked, rows: readonly OutboxRow[]) {
  const kinds = new Map(from === 'front' ? [] : rows.map((row) => [keyOfKind(kindOf(row)), row.account_id]))
  const byAccount = Map.groupBy(kinds.values(), (id) => id)
  const shareOf = (id: string) => Math.max(1, Math.floor(maxOfAccount / (byAccount.get(id)?.length ?? 1)))
  const cut: string[] = []
  let kind = ''
  let deliveries = 0
  return {
    isOver(row: OutboxRow): boolean {
      const own = keyOfKind(kindOf(row))
      if (own !== kind) deliveries = 0
      kind = own
      const isOver = from === 'kinds' && deliveries >= shareOf(row.account_id)
      if (isOver) cut.push(row.account_id)
      return isOver
    },
    count(made: number): void {
      deliveries += made
    },
    end: (looked: Looked): Looked => (looked.from === 'front' ? looked : { ...looked, more: [...looked.more, ...cut] }),
  }
}

const nothing = { events: 0, deliveries: 0, eventIds: [], leased: [], queued: [] } as const

/** Returns how far a batch has looked that ended with this event. */
function upTo(row: OutboxRow, looked: Looked): Looked {
  if (looked.from === 'front') return { from: 'front', isAll: false }
  return { from: 'kinds', last: kindOf(row), more: [...looked.more, row.account_id] }
}

type NewDelivery = { delivery: DueDelivery; event: LeasedEvent }

function idsOf(events: readonly LeasedEvent[]): string[] {
  return events.map(({ id }) => id)
}

function toEvent({ event_id: id, account_id: accountId, mode, type, body, traceparent }: OutboxRow) {
  return { id, accountId, mode, type, body: body ?? '', traceparent }
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
