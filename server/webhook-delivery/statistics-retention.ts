import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { queueNow } from '../queue/queue.ts'

/** What processes report of flows counts for a minute at most. */
const stateAgeMs = 60_000
/** The health of a webhook covers the last hour. */
const outcomeAgeMs = 7_200_000
/** The rest is deleted the next time. */
const oldOutcomesAtOnce = 50_000

/**
 * Deletes what processes reported of flows, and outcomes of attempts, that are too old to be shown. Their age is by the
 * time of the database, as it was written. Rows that are being written stay.
 */
export async function deleteOldStatistics(db: Db): Promise<void> {
  await sql`
    DELETE FROM flow_states WHERE (flow, process) IN (
      SELECT flow, process FROM flow_states
      WHERE updated_at < ${queueNow} - make_interval(secs => ${stateAgeMs / 1_000})
      FOR UPDATE SKIP LOCKED
    )
  `.execute(db)
  await sql`
    DELETE FROM webhook_outcomes WHERE (webhook_id, bucket) IN (
      SELECT webhook_id, bucket FROM webhook_outcomes
      WHERE bucket < ${queueNow} - make_interval(secs => ${outcomeAgeMs / 1_000})
      ORDER BY bucket LIMIT ${oldOutcomesAtOnce} FOR UPDATE SKIP LOCKED
    )
  `.execute(db)
}
