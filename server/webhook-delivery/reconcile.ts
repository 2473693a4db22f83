import { sql } from 'kysely'
import { type Db, inTransaction } from '../database/connection.ts'
import { noFlow } from '../queue/flow-jobs.ts'
import type { Queue } from '../queue/queue.ts'

const chunkSize = 1_000

type DeliveryWithoutJob = { id: string; due_at: Date | null; flow: number | null }

/**
 * Finds pending deliveries without a job that will run, and gives them one. There should be none, since a delivery and
 * its job are always written together. Returns how many there were.
 */
export async function reconcile({ db, queue }: { db: Db; queue: Queue }): Promise<number> {
  let mended = 0
  for (let after = ''; ; ) {
    const chunk: string[] = (
      await db
        .selectFrom('deliveries')
        .select('id')
        .where('status', '=', 'pending')
        .where('id', '>', after)
        .orderBy('id')
        .limit(chunkSize)
        .execute()
    ).map(({ id }) => id)
    const suspects = await queue.missing(db, chunk)
    if (suspects.length > 0) mended += await mend({ db, queue }, suspects)
    if (chunk.length < chunkSize) return mended
    after = chunk.at(-1) as string
  }
}

/**
 * Gives these deliveries a job if the process that held them is gone. Deliveries that have a job or are settled are
 * left unchanged. Returns how many got a job.
 */
export async function takeOverKept(means: { db: Db; queue: Queue }, deliveryIds: readonly string[]): Promise<number> {
  let mended = 0
  for (let from = 0; from < deliveryIds.length; from += chunkSize) {
    mended += await mend(means, deliveryIds.slice(from, from + chunkSize))
  }
  return mended
}

/** Checks again with the rows locked, since the deliveries may have been settled meanwhile. */
async function mend({ db, queue }: { db: Db; queue: Queue }, deliveryIds: readonly string[]): Promise<number> {
  return inTransaction(db, async (trx) => {
    const { rows } = await sql<DeliveryWithoutJob>`
      -- NULL: a first attempt is due at once.
      SELECT d.id, CASE WHEN d.attempt_count > 0 THEN d.next_attempt_at END AS due_at, w.flow
      FROM deliveries d LEFT JOIN webhooks w ON w.id = d.webhook_id
      WHERE d.id = ANY(${deliveryIds}::text[]) AND d.status = 'pending'
      ORDER BY d.id FOR UPDATE OF d
    `.execute(trx)
    const missing = new Set(
      await queue.missing(
        trx,
        rows.map(({ id }) => id),
      ),
    )
    const lost = rows.filter(({ id }) => missing.has(id))
    // A job that ended without its delivery may be in the way.
    await queue.remove(
      trx,
      lost.map(({ id }) => id),
    )
    await queue.flows.put(
      trx,
      lost.map(({ id, due_at: dueAt, flow }) => ({ deliveryId: id, flow: flow ?? noFlow, dueAt })),
    )
    return lost.length
  })
}
