import { type Kysely, sql } from 'kysely'

/** Where suppressed addresses come from, and whose owners unsubscribed where another reason is shown. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE suppressions
      -- Null: as the reason has it; see the feature.
      ADD COLUMN source text CHECK (source IN ('api', 'smtp_answer', 'notification', 'feedback_report',
        'unsubscribe_link')),
      -- When its owner unsubscribed and by which email, where it is there for another reason.
      ADD COLUMN unsubscribed_at timestamptz(3),
      ADD COLUMN unsubscribe_email_id text COLLATE "C";

    -- What a server took first and what bounced then was learned from a notification.
    UPDATE suppressions s SET source = 'notification'
    FROM email_recipients r
    WHERE s.reason = 'hard_bounce' AND r.email_id = s.email_id AND r.address_key = s.address_key
      AND r.accepted_at IS NOT NULL;
  `)
    .execute(db)
}
