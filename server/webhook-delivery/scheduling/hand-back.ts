import { sql } from 'kysely'
import type { Db } from '../../database/connection.ts'
import type { Queue } from '../../queue/queue.ts'
import { uuidOf } from '../../shared/ids.ts'
import type { Claim } from '../load-deliveries.ts'
import { lockedDeliveries } from '../lock-order.ts'

/** Maximum number of deliveries in one statement. */
const batchSize = 500

/**
 * Puts deliveries that were not attempted back at the head of their webhook's flow, due at once. A delivery that
 * another worker has claimed or attempted meanwhile is left unchanged.
 */
export async function handBack(means: { db: Db; queue: Queue }, claims: readonly Claim[]): Promise<void> {
  for (let from = 0; from < claims.length; from += batchSize) {
    await endClaims(means, claims.slice(from, from + batchSize))
  }
}

async function endClaims({ db, queue }: { db: Db; queue: Queue }, batch: readonly Claim[]): Promise<void> {
  const ids = batch.map(({ delivery }) => delivery.id)
  const uuids = ids.map(uuidOf)
  const unchanged = sql`
    SELECT i.job_id, i.retry_count, i.flow
    FROM unnest(
      ${ids}::text[],
      ${uuids}::uuid[],
      ${batch.map(({ delivery }) => delivery.run)}::int[],
      ${batch.map(({ delivery }) => delivery.schedulePosition)}::int[],
      ${batch.map(({ claimed }) => claimed.claim.retryCount)}::int[],
      ${batch.map(({ delivery }) => delivery.webhook.flow)}::int[]
    ) AS i (id, job_id, run, position, retry_count, flow)
    JOIN deliveries d ON d.id = i.id AND d.run = i.run AND d.schedule_position = i.position
    WHERE d.status = 'pending' AND d.id = ANY(ARRAY(${lockedDeliveries(sql`${ids}`)}))
  `
  await queue.handingBack(uuids, unchanged).execute(db)
}
