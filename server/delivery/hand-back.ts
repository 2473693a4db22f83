import { sql } from 'kysely'
import { type Db, inTransaction } from '../database/connection.ts'
import { uuidOf } from '../ids.ts'
import { noFlow } from '../queue/flow-jobs.ts'
import type { ClaimedDelivery, Queue } from '../queue/queue.ts'
import type { KeptBook } from './kept-book.ts'
import type { Claim } from './load.ts'

/** Deliveries handed back by one statement. */
const batchSize = 500

/**
 * Puts deliveries that were not attempted back into the queue, due at once, each first in the flow of its webhook. One
 * that another worker has claimed or carried on meanwhile is left as it is.
 */
export async function handBack({ db, queue, kept }: HandBackMeans, claims: readonly Claim[]): Promise<void> {
  for (let from = 0; from < claims.length; from += batchSize) {
    const batch = claims.slice(from, from + batchSize)
    await endClaims({ db, queue }, batch.filter(isClaimed))
    await giveJobs(
      { db, queue },
      batch.filter((claim) => !isClaimed(claim)),
    )
    kept?.done(batch)
  }
}

export type HandBackMeans = {
  db: Db
  queue: Queue
  /** Told what is not kept any more. */
  kept?: Pick<KeptBook, 'done'>
}

type Claimed = Claim & { claimed: ClaimedDelivery }

function isClaimed(claim: Claim): claim is Claimed {
  return 'claim' in claim.claimed
}

async function endClaims({ db, queue }: Omit<HandBackMeans, 'kept'>, batch: readonly Claimed[]): Promise<void> {
  if (batch.length === 0) return
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
    -- Repeated so that the planner uses an index, however old its statistics are.
    WHERE d.status = 'pending' AND d.id = ANY(${ids}::text[])
  `
  await queue.handingBack(uuids, unchanged).execute(db)
}

/** Gives those that are kept jobs of their own. */
async function giveJobs({ db, queue }: Omit<HandBackMeans, 'kept'>, batch: readonly Claim[]): Promise<void> {
  if (batch.length === 0) return
  const byId = new Map(batch.map((claim) => [claim.delivery.id, claim]))
  await inTransaction(db, async (trx) => {
    const { rows } = await sql<{ id: string }>`
      SELECT id FROM deliveries
      WHERE id = ANY(${[...byId.keys()]}::text[]) AND status = 'pending' AND run = 0 AND schedule_position = 0
      ORDER BY id FOR UPDATE
    `.execute(trx)
    const ids = await queue.withoutJob(
      trx,
      rows.map(({ id }) => id),
    )
    await queue.flows.put(
      trx,
      ids.map((deliveryId) => ({
        deliveryId,
        flow: byId.get(deliveryId)?.delivery.webhook.flow ?? noFlow,
        dueAt: null,
      })),
    )
  })
}
