import { type Kysely, sql } from 'kysely'

/** The results of a campaign: unsubscribes and clicks by link. Also its page on the web. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE statistics_deltas ADD COLUMN unsubscribed integer;
    ALTER TABLE statistics_hours ADD COLUMN unsubscribed bigint;
    ALTER TABLE statistics_days ADD COLUMN unsubscribed bigint;

    ALTER TABLE email_recipients
      -- The numbers of the links of its campaign that were clicked; 0: another link. Null: none.
      ADD COLUMN clicked_links smallint[],
      -- When the link to unsubscribe in this email was used for the first time.
      ADD COLUMN unsubscribed_at timestamptz(3);

    -- The links of a campaign as they were written, from 1. Stored when it starts, and never changed.
    CREATE TABLE campaign_links (
      account_id text COLLATE "C" NOT NULL,
      campaign_id text COLLATE "C" NOT NULL,
      number smallint NOT NULL,
      link text NOT NULL,
      PRIMARY KEY (account_id, campaign_id, number),
      FOREIGN KEY (account_id, campaign_id) REFERENCES campaigns ON DELETE CASCADE
    );

    -- Whether everybody may read it on the web.
    ALTER TABLE campaigns ADD COLUMN archive text NOT NULL DEFAULT 'none' CHECK (archive IN ('none', 'public'));
  `)
    .execute(db)
}
