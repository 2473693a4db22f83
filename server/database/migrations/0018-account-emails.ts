import { type Kysely, sql } from 'kysely'

/**
 * Emails of the service itself to people who sign in: invitations, and links that reset a password. They are emails of
 * no account, and their links are made when they are sent, so that no token is stored.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE users
      -- When a link was used that went to the address by email. Null: the address is not verified.
      ADD COLUMN email_verified_at timestamptz(3),
      ADD COLUMN totp_made_at timestamptz(3);

    ALTER TABLE user_links
      ADD COLUMN by_email boolean NOT NULL DEFAULT false,
      ADD COLUMN emailed_at timestamptz(3),
      ADD COLUMN email_failed_at timestamptz(3);

    CREATE TABLE account_emails (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      kind text NOT NULL CHECK (kind IN ('invitation', 'password_reset')),
      -- The account that invites. Null: a reset, which is about no account.
      account_id text COLLATE "C" REFERENCES accounts ON DELETE CASCADE,
      -- The link to send. Null: a reset whose address has not been looked up yet. The link may have ended.
      link_id text COLLATE "C",
      email text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL,
      -- When it is tried next; while it is tried, when another process takes it over. Null: it is done, and counted for
      -- the limits of its account.
      due_at timestamptz(3),
      attempts integer NOT NULL DEFAULT 0,
      CHECK ((kind = 'invitation') = (account_id IS NOT NULL)),
      CHECK (kind = 'password_reset' OR link_id IS NOT NULL)
    );
    -- One reset for an address at a time.
    CREATE UNIQUE INDEX account_emails_of_resets ON account_emails (email) WHERE kind = 'password_reset';
    CREATE INDEX account_emails_due ON account_emails (kind, due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX account_emails_by_account ON account_emails (account_id, created_at) WHERE account_id IS NOT NULL;
    CREATE INDEX account_emails_by_time ON account_emails (created_at);

    -- The domain of the sender may be one of any account.
    CREATE INDEX domains_verified_by_name ON domains (name) WHERE status = 'verified';
  `)
    .execute(db)
}
