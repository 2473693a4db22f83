import { sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import { uuidOf } from '../ids.ts'
import { priorityOf } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import type { Claim } from './claim.ts'

/** Where a delivery that is handed back waits. */
export type PriorityOf = (claim: Claim) => number

/** Deliveries handed back by one statement. */
const batchSize = 500

/**
 * Puts claimed deliveries that were not attempted back into the queue, due at once, each in its lane: first
 * of the fresh ones, unless `priorityOfOne` says otherwise. One that another worker has claimed or carried on
 * meanwhile is left as it is.
 */
export async function handBack(
  { db, queue }: { db: Handle; queue: Queue },
  claims: readonly Claim[],
  priorityOfOne: PriorityOf = ({ delivery }) => priorityOf(delivery.webhook, null),
): Promise<void> {
  for (let from = 0; from < claims.length; from += batchSize) {
    const batch = claims.slice(from, from + batchSize)
    const ids = batch.map(({ delivery }) => delivery.id)
    const uuids = ids.map(uuidOf)
    const unchanged = sql`
      SELECT i.job_id, i.retry_count, i.priority
      FROM unnest(
        ${ids}::text[],
        ${uuids}::uuid[],
        ${batch.map(({ delivery }) => delivery.attemptCount)}::int[],
        ${batch.map(({ claimed }) => claimed.claim.retryCount)}::int[],
        ${batch.map(priorityOfOne)}::int[]
      ) AS i (id, job_id, attempt_count, retry_count, priority)
      JOIN deliveries d ON d.id = i.id AND d.attempt_count = i.attempt_count
      -- Said twice, as there.
      WHERE d.status = 'pending' AND d.id = ANY(${ids}::text[])
    `
    await queue.handingBack(uuids, unchanged).execute(db)
  }
}
