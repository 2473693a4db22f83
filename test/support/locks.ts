import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'

/** Resolves once a session on the database of `db` waits for another's lock, in a statement with `text` in it. Default: any. */
export function untilSomebodyWaits(db: Db, text = ''): Promise<void> {
  return untilSessionsWait(db, 1, text)
}

/** The same for `count` sessions. */
export async function untilSessionsWait(db: Db, count: number, text = ''): Promise<void> {
  for (;;) {
    const { rows } = await sql`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND position(${text} IN query) > 0
    `.execute(db)
    if (rows.length >= count) return
  }
}
