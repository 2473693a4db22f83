import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import { priorityOfSlow } from '../queue/lanes.ts'
import type { Queue } from '../queue/queue.ts'
import { pageOfPending } from './pending.ts'

export type LaneChangeMeans = { db: Db; queue: Queue; logger: Logger }

/** Deliveries moved by one statement. */
const pageSize = 200
/** How long is paused for each millisecond of moving: a tenth of one connection's time is used at most. */
const pausePerMs = 9

/** Has webhooks in the slow lane from now on, or out of it. Answers those for which this is new. */
export async function setSlow(
  { db, logger }: LaneChangeMeans,
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

/**
 * Moves what waits in the queue for a webhook that has become slow into its slow lane, little by little,
 * so that nobody's deliveries stand behind it and the work of moving holds nobody up. What it does not
 * come to, because of `signal` or an error, is moved when it is claimed.
 */
export async function moveWaiting(
  { db, queue }: LaneChangeMeans,
  { id, lane }: { id: string; lane: number },
  signal: AbortSignal,
): Promise<void> {
  for (let after = ''; !signal.aborted; ) {
    const began = performance.now()
    const ids = await pageOfPending(db, { webhookId: id, after, limit: pageSize })
    await queue.move(db, ids, priorityOfSlow(lane))
    if (ids.length < pageSize) return
    after = ids.at(-1) as string
    const pauseMs = pausePerMs * (performance.now() - began)
    await pause(pauseMs, undefined, { signal, ref: false }).catch(() => undefined)
  }
}
