import type { Trx } from '../database/connection.ts'
import type { Queue } from '../queue/queue.ts'
import type { Claim, DueDelivery } from './load.ts'
import { readWebhooks } from './webhook-reads.ts'

/** A delivery that `trx` has just made, with its event. */
export type FreshDelivery = Pick<
  DueDelivery,
  'id' | 'accountId' | 'webhookId' | 'eventId' | 'body' | 'mode' | 'traceparent'
> & { flow: number }

/**
 * Has deliveries kept by this process, which may attempt them as soon as `trx` has committed. What an attempt
 * needs of the webhooks is read here, and is as of now. Those whose webhook is not enabled any more go into the
 * queue, so that they are put away like all others whose webhook is gone.
 */
export async function keepFresh(trx: Trx, queue: Queue, deliveries: readonly FreshDelivery[]): Promise<Claim[]> {
  if (deliveries.length === 0) return []
  const webhooks = await readWebhooks(
    trx,
    deliveries.map(({ webhookId }) => webhookId),
  )
  const wanted = deliveries.filter(({ webhookId }) => webhooks.has(webhookId))
  const unwanted = deliveries.filter(({ webhookId }) => !webhooks.has(webhookId))
  await queue.flows.put(
    trx,
    unwanted.map(({ id, flow }) => ({ deliveryId: id, flow, dueAt: null })),
  )
  if (wanted.length === 0) return []
  const keptBy = await queue.kept.keep(
    trx,
    wanted.map(({ id }) => id),
  )
  return wanted.map(({ flow: _, ...delivery }) => ({
    claimed: { deliveryId: delivery.id, keptBy },
    delivery: {
      ...delivery,
      // Samples are sent without the outbox.
      sample: false,
      attemptCount: 0,
      run: 0,
      schedulePosition: 0,
      webhook: webhooks.get(delivery.webhookId) as DueDelivery['webhook'],
    },
  }))
}
