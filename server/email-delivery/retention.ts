import { sql } from 'kysely'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { subjectKey } from '../message/subject-key.ts'
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
    const emails = await inTransaction(db, async (trx) => {
      const gone = await deletePage(trx, { after, bound, until })
      await deleteSubjects(trx, gone)
      return gone
    })
    deleted += emails.length
    if (emails.length < chunkSize) return deleted
    after = emails.at(-1)?.id as string
  }
}

type DeletedEmail = { id: string; account_id: string; mode: string; subject: string }

async function deletePage(trx: Trx, { after, bound, until }: { after: string; bound: string; until: Date }) {
  // A locked email is being sent, or a fact about it is being stored.
  const { rows } = await sql<DeletedEmail>`
    WITH page AS (
      SELECT id, account_id, mode, left(subject, 400) AS subject FROM emails WHERE id > ${after} AND id < ${bound}
        AND status NOT IN ('scheduled', 'queued', 'sending') AND coalesce(completed_at, created_at) < ${until}
      ORDER BY id LIMIT ${chunkSize} FOR UPDATE SKIP LOCKED
    ), gone AS (
      DELETE FROM emails WHERE id = ANY(ARRAY(SELECT id FROM page))
    )
    SELECT * FROM page ORDER BY id
  `.execute(trx)
  return rows
}

/** Deletes what the emails are searched by. It has no foreign key: see the migration 0016-email-search. */
async function deleteSubjects(trx: Trx, emails: readonly DeletedEmail[]): Promise<void> {
  if (emails.length === 0) return
  await sql`
    DELETE FROM email_subjects WHERE (account_id, mode, subject_key, email_id) IN (
      SELECT * FROM unnest(${emails.map((email) => email.account_id)}::text[], ${emails.map((email) => email.mode)}::text[],
        ${emails.map((email) => subjectKey(email.subject))}::text[], ${emails.map((email) => email.id)}::text[])
    )
  `.execute(trx)
}
