import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { ClaimedDelivery, Queue } from '../queue/queue.ts'
import type { Claim } from './claim.ts'
import type { DueDelivery } from './load.ts'

/** A delivery that `trx` has just made, with its event. */
export type FreshDelivery = Pick<DueDelivery, 'id' | 'webhookId' | 'eventId' | 'body' | 'traceparent'> & {
  priority: number
}

/**
 * Puts deliveries into the queue that are claimed from the start, so that the process which makes them may
 * attempt them as soon as `trx` has committed. What an attempt needs of the webhooks is read last, and is as
 * of then. Those whose webhook is not enabled any more are `unwanted`: to be given back when `trx` has
 * committed, so that they are put away like all others whose webhook is gone.
 */
export async function claimFresh(
  trx: Trx,
  queue: Queue,
  deliveries: readonly FreshDelivery[],
): Promise<{ claims: Claim[]; unwanted: ClaimedDelivery[] }> {
  if (deliveries.length === 0) return { claims: [], unwanted: [] }
  const jobs = await queue.putClaimed(
    trx,
    deliveries.map(({ id, priority }) => ({ deliveryId: id, priority })),
  )
  const webhooks = await readWebhooks(
    trx,
    deliveries.map(({ webhookId }) => webhookId),
  )
  const claims: Claim[] = []
  const unwanted: ClaimedDelivery[] = []
  for (const [index, { priority: _, ...delivery }] of deliveries.entries()) {
    const claimed = jobs[index] as ClaimedDelivery
    const webhook = webhooks.get(delivery.webhookId)
    if (webhook === undefined) unwanted.push(claimed)
    else claims.push({ claimed, delivery: { ...delivery, attemptCount: 0, schedulePosition: 0, webhook } })
  }
  return { claims, unwanted }
}

type Webhook = DueDelivery['webhook']

/** Those that are enabled, by id. */
async function readWebhooks(trx: Trx, ids: readonly string[]): Promise<Map<string, Webhook>> {
  const rows = await executePrepared(
    trx,
    { name: 'read_webhooks' },
    trx
      .selectFrom('webhooks')
      .select(['id', 'url', 'secret', 'previous_secret', 'previous_secret_expires_at', 'slow', 'lane'])
      .where('id', '=', sql<string>`ANY(${[...new Set(ids)]}::text[])`)
      .where('status', '=', 'enabled'),
  )
  return new Map(rows.map(({ id, ...webhook }) => [id, webhook]))
}
