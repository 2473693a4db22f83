import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { priorityOf } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import type { DueDelivery } from './load.ts'

/** Deliveries handed back in one transaction. */
const batchSize = 500

/**
 * Puts claimed deliveries that were not attempted back into the queue, due at once, each in its lane: first
 * of the fresh ones, unless `priorityOfOne` says otherwise. One that another worker has carried on meanwhile
 * is left as it is.
 */
export async function handBack(
  { db, queue }: { db: Db; queue: Queue },
  deliveries: readonly DueDelivery[],
  priorityOfOne: (delivery: DueDelivery) => number = ({ webhook }) => priorityOf(webhook, null),
): Promise<void> {
  for (let from = 0; from < deliveries.length; from += batchSize) {
    const batch = deliveries.slice(from, from + batchSize)
    await inTransaction(db, async (trx) => {
      const unchanged = await lockUnchanged(trx, batch)
      await queue.remove(
        trx,
        unchanged.map(({ id }) => id),
      )
      await queue.put(
        trx,
        unchanged.map((delivery) => ({ deliveryId: delivery.id, priority: priorityOfOne(delivery), dueAt: null })),
      )
    })
  }
}

async function lockUnchanged(trx: Trx, deliveries: readonly DueDelivery[]): Promise<DueDelivery[]> {
  const ids = deliveries.map(({ id }) => id)
  const { rows } = await sql<{ id: string }>`
    SELECT d.id FROM deliveries d
    JOIN unnest(
      ${ids}::text[],
      ${deliveries.map(({ attemptCount }) => attemptCount)}::int[]
    ) AS i (id, attempt_count) ON i.id = d.id AND i.attempt_count = d.attempt_count
    -- Said twice, as in settleSuccesses.
    WHERE d.status = 'pending' AND d.id = ANY(${ids}::text[])
    ORDER BY d.id FOR UPDATE OF d
  `.execute(trx)
  const unchanged = new Set(rows.map(({ id }) => id))
  return deliveries.filter(({ id }) => unchanged.has(id))
}
