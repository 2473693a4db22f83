import { sql } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { subjectKey } from '../message/subject-key.ts'

export type CampaignEmails = { accountId: string; emailIds: readonly string[] }

type Locked = { id: string; mode: string; subject: string }

/**
 * Locks those of the emails that no attempt was begun for. A worker that has claimed one locks it too, before it
 * begins: so an email is either begun, or found here.
 */
export async function lockUnbegun(trx: Trx, { accountId, emailIds }: CampaignEmails): Promise<Locked[]> {
  const { rows } = await sql<Locked>`
    SELECT id, mode, left(subject, 400) AS subject FROM emails
    WHERE id = ANY(${emailIds}::text[]) AND account_id = ${accountId} AND status = 'queued'
      -- A process may have died in an attempt: the server may have the message.
      -- OFFSET 0 makes the planner look up each by the primary key, whatever the statistics say.
      AND NOT EXISTS (SELECT FROM email_recipients r WHERE r.email_id = emails.id AND r.attempt_count > 0 OFFSET 0)
    ORDER BY id FOR UPDATE
  `.execute(trx)
  return rows
}

/** Deletes locked emails, with everything that belongs to them. */
export async function deleteEmails(trx: Trx, accountId: string, emails: readonly Locked[]): Promise<void> {
  const ids = emails.map(({ id }) => id)
  await sql`
    WITH gone AS (
      DELETE FROM emails WHERE id = ANY(${ids}::text[]) AND account_id = ${accountId}
    )
    -- It has no foreign key: see the migration 0016-email-search.
    DELETE FROM email_subjects WHERE (account_id, mode, subject_key, email_id) IN (
      SELECT ${accountId}, s.* FROM unnest(${emails.map(({ mode }) => mode)}::text[],
        ${emails.map(({ subject }) => subjectKey(subject))}::text[], ${ids}::text[]) AS s
    )
  `.execute(trx)
}

/** Cancels locked emails. */
export async function cancelEmails(
  trx: Trx,
  { accountId, emailIds }: CampaignEmails,
  { at, detail }: { at: Date; detail: string },
): Promise<void> {
  await sql`
    WITH history AS (
      INSERT INTO email_timeline (email_id, at, type, detail)
      SELECT id, ${at}, 'canceled', ${detail} FROM unnest(${emailIds}::text[]) AS i (id)
    ), recipient AS (
      UPDATE email_recipients SET status = 'canceled', next_attempt_at = NULL, reason = ${detail}
      WHERE email_id = ANY(${emailIds}::text[]) AND account_id = ${accountId} AND status = 'queued'
    )
    UPDATE emails SET status = 'canceled', updated_at = ${at}, completed_at = ${at}
    WHERE id = ANY(${emailIds}::text[]) AND account_id = ${accountId}
  `.execute(trx)
}
