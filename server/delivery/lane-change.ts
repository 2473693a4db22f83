import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import { priorityOf } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import { pageOfPending, pageSize } from './pending.ts'

type Means = { db: Db; queue: Queue; logger: Logger }

/**
 * Moves webhooks into the slow lane, with all of theirs that waits in the queue, so that nobody's
 * deliveries stand behind it. What still comes into the old lane is found when it is claimed.
 */
export async function moveToSlowLane(means: Means, webhookIds: readonly string[]): Promise<void> {
  const { db, queue } = means
  for (const { id, lane } of await setSlow(means, webhookIds, true)) {
    const priority = priorityOf({ slow: true, lane }, null)
    for (let after = ''; ; ) {
      const ids = await pageOfPending(db, id, after)
      await queue.move(db, ids, priority)
      if (ids.length < pageSize) break
      after = ids.at(-1) as string
    }
  }
}

/** Lets webhooks out of the slow lane; what waits for them there is still made from there. */
export async function moveOutOfSlowLane(means: Means, webhookIds: readonly string[]): Promise<void> {
  await setSlow(means, webhookIds, false)
}

/** Answers the webhooks this is new for. */
async function setSlow(
  { db, logger }: Means,
  webhookIds: readonly string[],
  slow: boolean,
): Promise<{ id: string; lane: number }[]> {
  if (webhookIds.length === 0) return []
  const { rows } = await sql<{ id: string; lane: number }>`
    UPDATE webhooks SET slow = ${slow}
    WHERE id IN (
      SELECT id FROM webhooks WHERE id = ANY(${webhookIds}::text[]) AND slow <> ${slow} ORDER BY id FOR NO KEY UPDATE
    )
    RETURNING id, lane
  `.execute(db)
  if (rows.length > 0) logger.info({ webhookIds: rows.map(({ id }) => id), slow }, 'webhooks changed lanes')
  return rows
}
