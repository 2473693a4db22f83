import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { type Queue, queueNow, type TaskData } from '../queue/queue.ts'
import { lockedDeliveries } from './lock-order.ts'
import { pageOfPending } from './pending-deliveries.ts'
import { cancelRecovery } from './recovery/recovery-queries.ts'

/** Deliveries canceled in one transaction. */
const pageSize = 5_000

/**
 * Cancels all that is pending for webhooks that this transaction disables or deletes, with its jobs:
 * the first 5,000 at once, the others in the background. What is in flight is still settled. Recoveries of them
 * that are running end.
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
  // All together, so that they are locked in one order.
  if (canceled.length > 0) await cancelDeliveries(trx, queue, canceled)
}

/** Cancels the rest, in transactions of their own. Stops when the webhook is enabled again. Safe to begin again. */
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

/** Cancels those of `deliveryIds` that are pending, with their jobs. */
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
