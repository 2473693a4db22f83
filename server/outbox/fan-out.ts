import { sql } from 'kysely'
import type { Clock } from '../clock.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { newId } from '../ids.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import type { Turns } from '../queue/turns.ts'

/** Events taken in one transaction at most. */
const maxEvents = 500
/** Deliveries made in one transaction, beyond which no further event is begun. */
const maxDeliveries = 5_000
/** Rows written by one statement. */
const chunkSize = 2_500

type Waiting = { event_id: string; account_id: string; type: string }
type Target = { id: string; account_id: string; events: string[]; slow: boolean; lane: number }
type NewDelivery = { id: string; event: Waiting; target: Target; priority: number }

export type FanOutMeans = { db: Db; queue: Queue; clock: Clock; turns: Turns }

/** How much was done, and with which events. */
export type FanOut = { events: number; deliveries: number; eventIds: readonly string[] }

/**
 * Turns one batch of waiting events into deliveries with their jobs, in one transaction: an event
 * leaves the outbox if and only if its deliveries exist. Several workers may do this at once; each
 * event is taken by one of them. Answers how much was done; nothing when the outbox is empty.
 */
export async function fanOutBatch({ db, queue, clock, turns }: FanOutMeans): Promise<FanOut> {
  return inTransaction(db, async (trx) => {
    const waiting = await takeWaiting(trx)
    if (waiting.length === 0) return { events: 0, deliveries: 0, eventIds: [] }
    const targets = await targetsOf(trx, waiting)
    const now = clock.now()

    const done: string[] = []
    let made = 0
    let chunk: NewDelivery[] = []
    for (const event of waiting) {
      if (made >= maxDeliveries) break
      for (const target of targets.get(event.account_id) ?? []) {
        if (!target.events.includes(event.type)) continue
        chunk.push({ id: newId('delivery', now), event, target, priority: turns.next(target, now) })
        made += 1
        if (chunk.length === chunkSize) {
          await write(trx, queue, chunk, now)
          chunk = []
        }
      }
      done.push(event.event_id)
    }
    await write(trx, queue, chunk, now)
    await executePrepared(
      trx,
      { name: 'leave_outbox', sendsWithNext: true },
      trx.deleteFrom('outbox').where('event_id', '=', sql<string>`ANY(${done}::text[])`),
    )
    return { events: done.length, deliveries: made, eventIds: done }
  })
}

async function takeWaiting(trx: Trx): Promise<Waiting[]> {
  return executePrepared(
    trx,
    { name: 'take_from_outbox' },
    trx
      .selectFrom('outbox')
      .select(['event_id', 'account_id', 'type'])
      .orderBy('event_id')
      .limit(maxEvents)
      .forUpdate()
      .skipLocked(),
  )
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
      .select(['id', 'account_id', 'events', 'slow', 'lane'])
      .where('account_id', '=', sql<string>`ANY(${accountIds}::text[])`)
      .where('status', '=', 'enabled')
      .where('events', '&&', sql<string[]>`${types}::text[]`)
      .orderBy('id'),
  )
  return Map.groupBy(webhooks, (webhook) => webhook.account_id)
}

async function write(trx: Trx, queue: Queue, deliveries: readonly NewDelivery[], now: Date): Promise<void> {
  if (deliveries.length === 0) return
  const insertion = sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, next_attempt_at, created_at)
    SELECT id, account_id, webhook_id, event_id, event_type, ${queueNow}, ${now}
    FROM unnest(
      ${deliveries.map(({ id }) => id)}::text[],
      ${deliveries.map(({ event }) => event.account_id)}::text[],
      ${deliveries.map(({ target }) => target.id)}::text[],
      ${deliveries.map(({ event }) => event.event_id)}::text[],
      ${deliveries.map(({ event }) => event.type)}::text[]
    ) AS d (id, account_id, webhook_id, event_id, event_type)
  `
  await executePrepared(trx, { name: 'insert_deliveries', sendsWithNext: true }, insertion)
  await queue.put(
    trx,
    deliveries.map(({ id, priority }) => ({ deliveryId: id, priority, dueAt: null })),
  )
}
