import { type Db, inTransaction } from '../../database/connection.ts'
import type { FlowClaim, Wanted } from '../../queue/flow-jobs.ts'
import type { ClaimedDelivery, Queue } from '../../queue/queue.ts'
import { cancelDeliveries } from '../cancel.ts'
import { type Claim, loadDue } from '../load-deliveries.ts'
import { handBack } from './hand-back.ts'

export type Claimed = {
  /** Number of jobs claimed, by flow. */
  counts: ReadonlyMap<number, number>
  /** Deliveries to attempt, in the order in which they were due. */
  claims: Claim[]
  /** Time that each claimed delivery had waited since it was due, in any order. Seconds. */
  waits: number[]
  /** Deliveries that now wait in another flow, because the URL of their webhook has changed. */
  moved: Claim[]
}

/**
 * Claims due deliveries, at most `count` of each wanted flow. Cancels deliveries whose webhook is disabled or deleted,
 * or whose event is deleted. Drops jobs whose delivery has ended.
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
    // Otherwise the jobs would wait until the claim lapses. They do if this fails too.
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
    // A delivery that is not due yet has a job for its time.
  }
  if (unwanted.length > 0) await inTransaction(db, (trx) => cancelDeliveries(trx, queue, unwanted))
  await queue.drop(db, stale)
  await handBack({ db, queue }, moved)
  return { claims, waits, moved }
}
