import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { type Queue, queueNow } from '../queue/queue.ts'
import { pagesOfPending } from './pending.ts'

/** Cancels all that is pending for a webhook, with its jobs. What is in flight at this moment is still settled. */
export async function cancelPending(trx: Trx, queue: Queue, webhookId: string): Promise<void> {
  for await (const ids of pagesOfPending(trx, webhookId)) await cancelDeliveries(trx, queue, ids)
}

/** Cancels those of `deliveryIds` that are pending, with their jobs. */
export async function cancelDeliveries(trx: Trx, queue: Queue, deliveryIds: readonly string[]): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    UPDATE deliveries SET status = 'canceled', completed_at = ${queueNow}, next_attempt_at = NULL
    WHERE id IN (
      SELECT id FROM deliveries WHERE id = ANY(${deliveryIds}::text[]) AND status = 'pending' ORDER BY id FOR UPDATE
    )
    RETURNING id
  `.execute(trx)
  await queue.remove(
    trx,
    rows.map(({ id }) => id),
  )
}
