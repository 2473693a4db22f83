import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'

/** Answers once a session on the database of `db` waits for another's lock. */
export async function untilSomebodyWaits(db: Db): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    `.execute(db)
    if (rows.length > 0) return
  }
}
