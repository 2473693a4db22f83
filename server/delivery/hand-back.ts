import { sql } from 'kysely'
import { type Db, inTransaction } from '../database/connection.ts'
import { priorityOf } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import type { DueDelivery } from './load.ts'

/** Deliveries handed back in one transaction. */
const batchSize = 500

/** Puts claimed deliveries that were not attempted back into the queue, due at once, each in its lane. */
export async function handBack(
  { db, queue }: { db: Db; queue: Queue },
  deliveries: readonly DueDelivery[],
): Promise<void> {
  for (let from = 0; from < deliveries.length; from += batchSize) {
    const batch = deliveries.slice(from, from + batchSize)
    const ids = batch.map(({ id }) => id)
    await inTransaction(db, async (trx) => {
      const { rows } = await sql<{ id: string }>`
        SELECT id FROM deliveries WHERE id = ANY(${ids}::text[]) AND status = 'pending' ORDER BY id FOR UPDATE
      `.execute(trx)
      const pending = new Set(rows.map(({ id }) => id))
      await queue.remove(trx, ids)
      await queue.put(
        trx,
        batch
          .filter(({ id }) => pending.has(id))
          .map(({ id, webhook }) => ({ deliveryId: id, priority: priorityOf(webhook, null), dueAt: null })),
      )
    })
  }
}
