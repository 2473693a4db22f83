import { type Kysely, sql } from 'kysely'

/** Audiences whose people confirm that they want emails, and contacts that have not confirmed yet. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- Who asks people to confirm, and with what words. Null: nobody is asked.
    ALTER TABLE audiences ADD COLUMN double_opt_in jsonb;

    ALTER TABLE contacts
      DROP CONSTRAINT contacts_status_check,
      -- Not checked for the rows that are there, which would read them all: the former constraint allowed less.
      ADD CONSTRAINT contacts_status_check CHECK (status IN ('active', 'unsubscribed', 'pending')) NOT VALID,
      -- How many emails asked the person to confirm, and when the last one did.
      ADD COLUMN confirmations_sent smallint NOT NULL DEFAULT 0,
      ADD COLUMN confirmation_sent_at timestamptz(3);

    ALTER TABLE imports
      DROP CONSTRAINT imports_contact_status_check,
      ADD CONSTRAINT imports_contact_status_check
        CHECK (contact_status IN ('active', 'unsubscribed', 'pending')) NOT VALID;
  `)
    .execute(db)
}
