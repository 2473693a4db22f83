import type { Clock } from '../clock.ts'
import { type Db, inTransaction } from '../database/connection.ts'
import type { PriorityRange } from '../queue/lanes.ts'
import type { ClaimedDelivery, Queue } from '../queue/queue.ts'
import type { SecretBox } from '../secrets.ts'
import { cancelPending } from './cancel.ts'
import { type DueDelivery, loadDue } from './load.ts'

/** A delivery this process has claimed, with all its attempt needs. */
export type Claim = { delivery: DueDelivery; claimed: ClaimedDelivery }

/**
 * Claims up to `limit` due deliveries of a range of lanes. What is not to be sent any more is put
 * away: a job without a pending delivery is removed; deliveries whose webhook is disabled or gone
 * are canceled. `count` tells how many jobs were claimed, so that a full batch can be told.
 */
export async function claimDue(
  { db, queue, secretBox, clock }: { db: Db; queue: Queue; secretBox: SecretBox; clock: Clock },
  range: PriorityRange,
  limit: number,
): Promise<{ count: number; claims: Claim[] }> {
  const jobs = await queue.claim(range, limit)
  if (jobs.length === 0) return { count: 0, claims: [] }
  const loaded = await loadDue(db, {
    deliveryIds: jobs.map(({ deliveryId }) => deliveryId),
    now: clock.now(),
    secretBox,
  })
  const found = new Map(loaded.map((delivery) => [delivery.id, delivery]))
  const claims: Claim[] = []
  const stale: string[] = []
  const dead = new Set<string>()
  for (const claimed of jobs) {
    const delivery = found.get(claimed.deliveryId)
    if (delivery === undefined) stale.push(claimed.deliveryId)
    else if ('orphaned' in delivery || !delivery.webhook.enabled) dead.add(delivery.webhookId)
    else claims.push({ delivery, claimed })
  }
  if (stale.length > 0 || dead.size > 0) {
    await inTransaction(db, async (trx) => {
      await queue.remove(trx, stale)
      for (const webhookId of dead) await cancelPending(trx, queue, webhookId)
    })
  }
  return { count: jobs.length, claims }
}
