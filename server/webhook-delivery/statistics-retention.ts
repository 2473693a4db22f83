import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { queueNow } from '../queue/queue.ts'

/** States of flows are used for a minute at most. Milliseconds. */
const stateAgeMs = 60_000
/** The health of a webhook covers the last hour. Milliseconds. */
const outcomeAgeMs = 7_200_000
/** Maximum number of rows deleted in one call. The next call deletes more. */
const oldOutcomesAtOnce = 50_000

/**
 * Deletes states of flows and results of attempts that are too old to be shown, by the time of the database, which
 * wrote them too. Locked rows are skipped: they are being written.
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
