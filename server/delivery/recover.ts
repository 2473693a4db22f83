import { type Db, inTransaction } from '../database/connection.ts'
import type { Queue, TaskData } from '../queue/queue.ts'
import type { Turns } from '../queue/turns.ts'
import { recoverSome } from './queries.ts'
import { retryDelaysSeconds } from './retry-schedule.ts'

/** Deliveries made due in one transaction. */
const chunkSize = 1_000

/**
 * Makes everything of a webhook due that failed or was canceled in a span of time, oldest first, in
 * small transactions. Stops when the webhook is disabled or gone. Safe to begin again.
 */
export async function recover(
  { db, queue, turns, wake }: { db: Db; queue: Queue; turns: Pick<Turns, 'next'>; wake: () => void },
  { webhookId, since, until }: TaskData<'recover'>,
): Promise<void> {
  for (let after = ''; ; ) {
    const now = await queue.now()
    const ids = await inTransaction(db, async (trx) => {
      const webhook = await trx
        .selectFrom('webhooks')
        .select(['account_id', 'slow', 'lane'])
        .where('id', '=', webhookId)
        .where('status', '=', 'enabled')
        .forShare()
        .executeTakeFirst()
      if (webhook === undefined) return []
      const due = await recoverSome(trx, {
        webhookId,
        since: new Date(since),
        until: new Date(until),
        after,
        limit: chunkSize,
        lastPosition: retryDelaysSeconds.length,
      })
      // None should be in the queue; one left behind must not stop the recovery.
      await queue.remove(trx, due)
      await queue.put(
        trx,
        due.map((deliveryId) => ({ deliveryId, priority: turns.next(webhook.account_id, webhook, now), dueAt: null })),
      )
      return due
    })
    wake()
    if (ids.length < chunkSize) return
    after = ids.at(-1) as string
  }
}
