import type { Db } from '../database/connection.ts'
import type { Queue } from '../queue/queue.ts'
import { pagesOfPending } from './pending.ts'

/**
 * Puts all of a webhook that waits into another lane, so that nobody's deliveries stand behind it.
 * What is put in the old lane meanwhile is found when it is claimed.
 */
export async function moveWaiting(
  { db, queue }: { db: Db; queue: Queue },
  webhookId: string,
  priority: number,
): Promise<void> {
  for await (const ids of pagesOfPending(db, webhookId)) await queue.move(db, ids, priority)
}
