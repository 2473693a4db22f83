import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { firstIdAt } from '../shared/ids.ts'

/** Rows dealt with by one statement: each email takes its content, recipients and history along. */
const chunkSize = 200

/**
 * Deletes emails that were made in a span of time and had nothing left to be done at its end, with all that is
 * theirs. Returns how many emails.
 */
export async function deleteOldEmails(db: Db, { since, until }: { since: Date; until: Date }): Promise<number> {
  const bound = firstIdAt('email', until)
  let deleted = 0
  for (let after = firstIdAt('email', since); ; ) {
    // What is locked is being sent, or something about it comes in.
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
