import { type Kysely, sql } from 'kysely'

/** A/B tests of campaigns: who gets which variant, how each does, and which one the rest gets. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE campaigns
      -- Share, choice of the winner and variants, without their content. Null: there is one message.
      ADD COLUMN ab_test json,
      -- People in the test, by variant.
      ADD COLUMN ab_people integer[],
      -- When everybody in the test was written to. Null: the test is not over.
      ADD COLUMN ab_tested_at timestamptz(3),
      -- The variant that the rest gets, from 0. Null: none is chosen.
      ADD COLUMN ab_winner smallint,
      ADD COLUMN ab_decided_at timestamptz(3),
      DROP CONSTRAINT campaigns_waiting_for_check,
      ADD CONSTRAINT campaigns_waiting_for_check CHECK (waiting_for IN ('local_time', 'send_window', 'ab_test')),
      -- What waits for people to choose a winner does not wait for a time.
      DROP CONSTRAINT campaigns_check1,
      ADD CONSTRAINT campaigns_waiting_check
        CHECK (CASE WHEN waiting_for IS NULL THEN waiting_until IS NULL
          ELSE waiting_until IS NOT NULL OR waiting_for = 'ab_test' END),
      ADD CHECK ((ab_winner IS NULL) = (ab_decided_at IS NULL));

    -- The messages of variants that have one of their own.
    CREATE TABLE campaign_variants (
      account_id text COLLATE "C" NOT NULL,
      campaign_id text COLLATE "C" NOT NULL,
      -- From 0.
      number smallint NOT NULL,
      preheader text,
      html text,
      mjml text,
      text text,
      PRIMARY KEY (account_id, campaign_id, number),
      FOREIGN KEY (account_id, campaign_id) REFERENCES campaigns ON DELETE CASCADE
    );

    -- The variant of a person in the test. Null: of the rest, or there is no test.
    ALTER TABLE campaign_recipients ADD COLUMN variant smallint;
    CREATE INDEX campaign_recipients_in_test ON campaign_recipients (account_id, campaign_id, subscriber_id)
      WHERE status = 'waiting' AND variant IS NOT NULL;

    -- The variant that it tests. Null: none.
    ALTER TABLE emails ADD COLUMN variant smallint;
    -- Whether a person did, and no machine. Of emails that test a variant; null: not yet.
    ALTER TABLE email_recipients
      ADD COLUMN opened_by_person boolean,
      ADD COLUMN clicked_by_person boolean;
  `)
    .execute(db)
}
