import { type Kysely, sql } from 'kysely'

/**
 * Pairs of text that clients keep with emails and webhooks. A column with a constant default rewrites nothing.
 * The pairs that filter a list of emails are in a table of their own: building an index of `emails`, even a partial
 * one, would read the whole table once with writers locked out. The new table also keeps the order of the list for each
 * account, which an inverted index of the column does not.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE emails ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
    ALTER TABLE webhooks ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';

    CREATE TABLE email_metadata (
      account_id text COLLATE "C" NOT NULL,
      -- SHA-256 of name and value, in base64url: as long for every pair.
      pair text COLLATE "C" NOT NULL,
      email_id text COLLATE "C" NOT NULL REFERENCES emails ON DELETE CASCADE,
      PRIMARY KEY (account_id, pair, email_id)
    );
    CREATE INDEX email_metadata_by_email ON email_metadata (email_id);
  `)
    .execute(db)
}
