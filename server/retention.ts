import { sql } from 'kysely'
import type { Clock } from './clock.ts'
import type { Db } from './database/connection.ts'
import { firstIdAt } from './ids.ts'

/** Rows deleted by one statement: each holds its locks for some milliseconds. */
const chunkSize = 2_000
/** Counted requests are of no use once their window is over. */
const windowAgeMs = 3_600_000
/** An event is kept while a delivery of about its time may still need it. */
const marginMs = 3_600_000

export type Expired = { events: number; deliveries: number }

/**
 * Deletes events, deliveries and attempts older than `retentionMs`, in small transactions and along
 * the primary keys, so that nothing else waits. What is still pending stays, and so does its event.
 */
export async function deleteExpired(
  { db, clock }: { db: Db; clock: Clock },
  { retentionMs }: { retentionMs: number },
): Promise<Expired> {
  const now = clock.now().getTime()
  const cutoff = new Date(now - retentionMs)
  const deliveries = await deleteDeliveries(db, cutoff)
  const oldestNeeded = await oldestNeededEvent(db)
  const eventCutoff =
    oldestNeeded === null ? cutoff : new Date(Math.min(cutoff.getTime(), oldestNeeded.getTime() - marginMs))
  const events = await deleteEvents(db, eventCutoff)
  await db
    .deleteFrom('rate_limit_windows')
    .where('window_start', '<', new Date(now - windowAgeMs))
    .execute()
  return { events, deliveries }
}

async function deleteDeliveries(db: Db, cutoff: Date): Promise<number> {
  const bound = firstIdAt('delivery', cutoff)
  for (let deleted = 0; ; ) {
    const { rows } = await sql<{ id: string }>`
      WITH gone AS (
        DELETE FROM deliveries WHERE id IN (
          SELECT id FROM deliveries WHERE id < ${bound} AND status <> 'pending' ORDER BY id LIMIT ${chunkSize}
        ) AND status <> 'pending'
        RETURNING id
      ), attempts_gone AS (
        DELETE FROM attempts WHERE delivery_id IN (SELECT id FROM gone)
      )
      SELECT id FROM gone
    `.execute(db)
    deleted += rows.length
    if (rows.length < chunkSize) return deleted
  }
}

/** When the oldest event was made that is not yet fanned out or not yet delivered. */
async function oldestNeededEvent(db: Db): Promise<Date | null> {
  const { rows } = await sql<{ created_at: Date | null }>`
    SELECT min(created_at) AS created_at FROM events WHERE id IN (
      (SELECT event_id FROM outbox ORDER BY event_id LIMIT 1)
      UNION ALL
      (SELECT event_id FROM deliveries WHERE status = 'pending' ORDER BY id LIMIT 1)
    )
  `.execute(db)
  return rows[0]?.created_at ?? null
}

async function deleteEvents(db: Db, cutoff: Date): Promise<number> {
  const bound = firstIdAt('event', cutoff)
  for (let deleted = 0; ; ) {
    const { numAffectedRows } = await sql`
      DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id < ${bound} ORDER BY id LIMIT ${chunkSize})
    `.execute(db)
    const count = Number(numAffectedRows ?? 0n)
    deleted += count
    if (count < chunkSize) return deleted
  }
}
