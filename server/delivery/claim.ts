import { type Db, inTransaction } from '../database/connection.ts'
import type { PriorityRange } from '../queue/lanes.ts'
import type { ClaimedDelivery, KeptDelivery, Queue } from '../queue/queue.ts'
import { cancelDeliveries } from './cancel.ts'
import { type DueDelivery, loadDue } from './load.ts'

/** A delivery this process has claimed, or keeps since it was fanned out, with all its attempt needs. */
export type Claim = { delivery: DueDelivery; claimed: ClaimedDelivery | KeptDelivery }

/**
 * Claims up to `limit` due deliveries of a range of lanes. What is not to be sent any more is put
 * away: deliveries whose webhook is disabled or gone, or whose event is, are canceled; the job of one
 * that has ended is dropped. `count` tells how many jobs were claimed, so that a full batch can be told.
 */
export async function claimDue(
  { db, queue }: { db: Db; queue: Queue },
  range: PriorityRange,
  limit: number,
): Promise<{ count: number; claims: Claim[] }> {
  const jobs = await queue.claim(range, limit)
  if (jobs.length === 0) return { count: 0, claims: [] }
  try {
    return { count: jobs.length, claims: await sortOut({ db, queue }, jobs) }
  } catch (error) {
    // Else they would wait until the claim has lapsed; where this fails too, they do.
    await queue.giveBack(jobs).catch(() => undefined)
    throw error
  }
}

/** Answers those of `jobs` that are to be attempted, and puts the others away. */
async function sortOut({ db, queue }: { db: Db; queue: Queue }, jobs: readonly ClaimedDelivery[]): Promise<Claim[]> {
  const loaded = await loadDue(
    db,
    jobs.map(({ deliveryId }) => deliveryId),
  )
  const found = new Map(loaded.map((delivery) => [delivery.id, delivery]))
  const claims: Claim[] = []
  const unwanted: string[] = []
  const stale: ClaimedDelivery[] = []
  for (const claimed of jobs) {
    const delivery = found.get(claimed.deliveryId)
    if (delivery === undefined) stale.push(claimed)
    else if (!('passed' in delivery)) claims.push({ delivery, claimed })
    else if (delivery.passed === 'unwanted') unwanted.push(delivery.id)
    // One that is early has a job for its time.
  }
  if (unwanted.length > 0) await inTransaction(db, (trx) => cancelDeliveries(trx, queue, unwanted))
  await queue.drop(db, stale)
  return claims
}
