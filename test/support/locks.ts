import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'
import { patienceMs } from './patience.ts'

const pollMs = 5

/** Resolves once a session on the database of `db` waits for another's lock, in a statement with `text` in it. Default: any. */
export function untilSomebodyWaits(db: Db, text = ''): Promise<void> {
  return untilSessionsWait(db, 1, text)
}

/** The same for `count` sessions. Rejects after `patienceMs`, with what the sessions do instead. */
export async function untilSessionsWait(db: Db, count: number, text = ''): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const { rows } = await sql`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND position(${text} IN query) > 0
    `.execute(db)
    if (rows.length >= count) return
    if (performance.now() > deadline) {
      const which = text === '' ? 'sessions wait' : `sessions with "${text}" wait`
      throw new Error(
        `${rows.length} of ${count} ${which} for a lock; there are: ${(await describeSessions(db)).join('; ')}`,
      )
    }
    await delay(pollMs)
  }
}

/** Describes the activity of each client of the database of `db`. */
export async function describeSessions(db: Db): Promise<string[]> {
  const { rows } = await sql<{ what: string }>`
    SELECT format('%s (%s, waits for %s: %s)', application_name, state, coalesce(wait_event_type, 'nothing'),
      left(query, 80)) AS what
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  `.execute(db)
  return rows.map(({ what }) => what)
}
