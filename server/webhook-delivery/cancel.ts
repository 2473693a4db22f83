import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { type Queue, queueNow, type TaskData } from '../queue/queue.ts'
import { lockedDeliveries } from './lock-order.ts'
import { pageOfPending } from './pending-deliveries.ts'
import { cancelRecovery } from './recovery/recovery-rows.ts'

/** Maximum number of deliveries canceled in one transaction. */
const pageSize = 5_000

/**
 * Cancels all pending deliveries of webhooks that this transaction disables or deletes, and removes their jobs: the
 * first 5,000 at once, the rest in the background. Deliveries in flight are still settled. Running recoveries of these
 * webhooks end.
 */
export async function cancelPending(trx: Trx, queue: Queue, webhookIds: readonly string[]): Promise<void> {
  const canceled: string[] = []
  for (const webhookId of webhookIds) {
    await cancelRecovery(trx, webhookId)
    const limit = pageSize - canceled.length
    const ids = await pageOfPending(trx, { webhookId, after: '', limit })
    canceled.push(...ids)
    if (ids.length === limit) await queue.addTask(trx, { name: 'cancel', data: { webhookId } })
  }
  // One statement for all webhooks, so that the deliveries are locked in one order.
  if (canceled.length > 0) await cancelDeliveries(trx, queue, canceled)
}

/**
 * Cancels a page of what is pending for a webhook that is disabled. Returns true if there may be more: the transaction
 * must then not enable it.
 */
export async function cancelPage(trx: Trx, queue: Queue, webhookId: string): Promise<boolean> {
  const page = await pageOfPending(trx, { webhookId, after: '', limit: pageSize })
  if (page.length > 0) await cancelDeliveries(trx, queue, page)
  return page.length === pageSize
}

/**
 * Cancels the rest, each page in a transaction of its own. Stops if the webhook is enabled again: nothing was pending
 * then. Safe to repeat.
 */
export async function cancelRest(
  { db, queue }: { db: Db; queue: Queue },
  { webhookId }: TaskData<'cancel'>,
): Promise<void> {
  for (let after = ''; ; ) {
    const ids = await inTransaction(db, async (trx) => {
      const webhook = await trx
        .selectFrom('webhooks')
        .select('status')
        .where('id', '=', webhookId)
        .forNoKeyUpdate()
        .executeTakeFirst()
      if (webhook?.status === 'enabled') return []
      const page = await pageOfPending(trx, { webhookId, after, limit: pageSize })
      await cancelDeliveries(trx, queue, page)
      return page
    })
    if (ids.length < pageSize) return
    after = ids.at(-1) as string
  }
}

/** Cancels those of `deliveryIds` that are pending, and removes their jobs. */
export async function cancelDeliveries(trx: Trx, queue: Queue, deliveryIds: readonly string[]): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    UPDATE deliveries SET status = 'canceled', completed_at = ${queueNow}, next_attempt_at = NULL
    WHERE id = ANY(ARRAY(${lockedDeliveries(sql`${deliveryIds}`)})) AND status = 'pending'
    RETURNING id
  `.execute(trx)
  await queue.remove(
    trx,
    rows.map(({ id }) => id),
  )
}
