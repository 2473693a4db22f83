import { type Db, inTransaction } from '../../database/connection.ts'
import type { FlowClaim, Wanted } from '../../queue/flow-jobs.ts'
import type { ClaimedDelivery, Queue } from '../../queue/queue.ts'
import { cancelDeliveries } from '../cancel.ts'
import { type Claim, loadDue } from '../load-deliveries.ts'
import { handBack } from './hand-back.ts'

export type Claimed = {
  /** How many jobs were claimed of each flow. */
  counts: ReadonlyMap<number, number>
  /** Those that are to be attempted, in the order in which they were due. */
  claims: Claim[]
  /** How long each of these had waited since it was due, in any order. Seconds. */
  waits: number[]
  /** Deliveries that wait in another flow now, because the URL of their webhook has changed. */
  moved: Claim[]
}

/**
 * Claims due deliveries of flows, so many of each at most. What is not to be sent any more is put away: deliveries
 * whose webhook is disabled or gone, or whose event is, are canceled; the job of one that has ended is dropped.
 */
export async function claimDue({ db, queue }: { db: Db; queue: Queue }, wanted: readonly Wanted[]): Promise<Claimed> {
  const jobs = await queue.flows.claim(wanted)
  if (jobs.length === 0) return { counts: new Map(), claims: [], waits: [], moved: [] }
  try {
    const sorted = await sortOut({ db, queue }, jobs)
    const counts = new Map<number, number>()
    for (const { flow } of jobs) counts.set(flow, (counts.get(flow) ?? 0) + 1)
    return { counts, ...sorted }
  } catch (error) {
    // Else they would wait until the claim has lapsed; where this fails too, they do.
    await queue.giveBack(jobs).catch(() => undefined)
    throw error
  }
}

async function sortOut(
  { db, queue }: { db: Db; queue: Queue },
  jobs: readonly FlowClaim[],
): Promise<Omit<Claimed, 'counts'>> {
  const loaded = await loadDue(
    db,
    jobs.map(({ deliveryId }) => deliveryId),
  )
  const found = new Map(loaded.map((delivery) => [delivery.id, delivery]))
  const claims: Claim[] = []
  const waits: number[] = []
  const moved: Claim[] = []
  const unwanted: string[] = []
  const stale: ClaimedDelivery[] = []
  for (const { flow, ...claimed } of jobs) {
    const delivery = found.get(claimed.deliveryId)
    if (delivery === undefined) stale.push(claimed)
    else if (!('passed' in delivery)) {
      if (delivery.webhook.flow === flow) waits.push(delivery.waitedSeconds)
      ;(delivery.webhook.flow === flow ? claims : moved).push({ delivery, claimed })
    } else if (delivery.passed === 'unwanted') unwanted.push(delivery.id)
    // One that is early has a job for its time.
  }
  if (unwanted.length > 0) await inTransaction(db, (trx) => cancelDeliveries(trx, queue, unwanted))
  await queue.drop(db, stale)
  await handBack({ db, queue }, moved)
  return { claims, waits, moved }
}
