import { type Kysely, sql } from 'kysely'

/** Templates, constants and segments in campaigns, and their deletion in steps. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE campaigns
      -- No reference: the template may be deleted.
      ADD COLUMN template_id text COLLATE "C",
      -- The version that was copied. Null: the campaign has no template, or was not sent yet.
      ADD COLUMN template_version integer,
      -- False: the subject is that of the template.
      ADD COLUMN has_own_subject boolean NOT NULL DEFAULT true,
      -- Values for the content, as given. Not jsonb, which takes no U+0000 and changes the order of names.
      ADD COLUMN variables json NOT NULL DEFAULT '{}',
      -- The same with the fallbacks of the template, when the campaign was sent. Null: it was not.
      ADD COLUMN constants json,
      -- No reference: segments may be deleted.
      ADD COLUMN segment_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
      -- Gone for readers; its recipients are being deleted. Null: it is there.
      ADD COLUMN deleted_at timestamptz(3);
    CREATE INDEX campaigns_active ON campaigns (account_id) WHERE status IN ('scheduled', 'sending', 'paused');
  `)
    .execute(db)
}
