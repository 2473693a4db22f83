import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'

export type NewCapturedMessage = {
  id: string
  /** The email in the return path of the message; null: the message is from another program. */
  emailId: string | null
  mailFrom: string
  recipients: readonly string[]
  content: Buffer
  at: Date
}

/**
 * Stores messages with one statement, each with the account and mode of its email. Messages of other programs get the
 * mode `live` and the first account, which is the operator's. Returns the accounts.
 *
 * All contents are one parameter, because the driver sends a single Buffer as binary, but an array of them as text.
 */
export async function insertCaptured(
  db: Db,
  messages: readonly NewCapturedMessage[],
): Promise<{ accountId: string | null }[]> {
  const sizes = messages.map(({ content }) => content.length)
  const starts: number[] = []
  // PostgreSQL counts from 1.
  let next = 1
  for (const size of sizes) {
    starts.push(next)
    next += size
  }
  const contents = Buffer.concat(messages.map(({ content }) => content))
  const { rows } = await sql<{ accountId: string | null }>`
    INSERT INTO captured_messages (id, account_id, mode, email_id, mail_from, recipients, content, created_at)
    SELECT m.id,
      CASE WHEN m.email_id IS NULL THEN (SELECT id FROM accounts ORDER BY id LIMIT 1)
        ELSE e.account_id END,
      coalesce(e.mode, 'live'), m.email_id, m.mail_from,
      ARRAY(SELECT jsonb_array_elements_text(m.recipients)), substring(${contents}::bytea FROM m.start FOR m.size), m.at
    FROM unnest(
      ${messages.map(({ id }) => id)}::text[],
      ${messages.map(({ emailId }) => emailId)}::text[],
      ${messages.map(({ mailFrom }) => mailFrom)}::text[],
      ${messages.map(({ recipients }) => JSON.stringify(recipients))}::jsonb[],
      ${starts}::integer[],
      ${sizes}::integer[],
      ${messages.map(({ at }) => at)}::timestamptz[]
    ) AS m (id, email_id, mail_from, recipients, start, size, at)
    -- OFFSET 0 forces a nested loop over the primary key, whatever the statistics say.
    LEFT JOIN LATERAL (SELECT account_id, mode FROM emails WHERE id = m.email_id OFFSET 0) e ON true
    RETURNING account_id AS "accountId"
  `.execute(db)
  return rows
}
