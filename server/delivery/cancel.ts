import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { type Queue, queueNow } from '../queue/queue.ts'

/** Deliveries canceled by one statement. */
const chunkSize = 5_000

/** Cancels all that is pending for a webhook, with its jobs. What is in flight at this moment is still settled. */
export async function cancelPending(trx: Trx, queue: Queue, webhookId: string): Promise<void> {
  for (let after = ''; ; ) {
    const { rows } = await sql<{ id: string }>`
      UPDATE deliveries SET status = 'canceled', completed_at = ${queueNow}, next_attempt_at = NULL
      WHERE id IN (
        SELECT id FROM deliveries
        WHERE webhook_id = ${webhookId} AND status = 'pending' AND id > ${after}
        ORDER BY id LIMIT ${chunkSize} FOR UPDATE
      )
      RETURNING id
    `.execute(trx)
    const ids = rows.map(({ id }) => id).sort()
    await queue.remove(trx, ids)
    if (ids.length < chunkSize) return
    after = ids.at(-1) as string
  }
}
