import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { firstIdAt } from '../shared/ids.ts'

/** Emails deleted by one statement. The contents, recipients and timeline of each are deleted with it. */
const chunkSize = 200

/**
 * Deletes emails created from `since` until `until` that were completed before `until`, with everything that belongs
 * to them. Returns the number of emails.
 */
export async function deleteOldEmails(db: Db, { since, until }: { since: Date; until: Date }): Promise<number> {
  const bound = firstIdAt('email', until)
  let deleted = 0
  for (let after = firstIdAt('email', since); ; ) {
    // A locked email is being sent, or a fact about it is being stored.
    const { rows } = await sql<{ id: string }>`
      WITH page AS (
        SELECT id FROM emails WHERE id > ${after} AND id < ${bound}
          AND status NOT IN ('scheduled', 'queued', 'sending') AND coalesce(completed_at, created_at) < ${until}
        ORDER BY id LIMIT ${chunkSize} FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM emails WHERE id = ANY(ARRAY(SELECT id FROM page))
      )
      SELECT id FROM page
    `.execute(db)
    deleted += rows.length
    if (rows.length < chunkSize) return deleted
    after = rows.at(-1)?.id as string
  }
}
