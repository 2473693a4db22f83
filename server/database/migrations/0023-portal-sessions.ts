import { type Kysely, sql } from 'kysely'

/**
 * Sessions of the portal, in which customers of an account see their own webhooks: those with the name of the customer
 * in their metadata. Of codes and tokens only hashes are stored.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE portal_sessions (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      mode text NOT NULL CHECK (mode IN ('test', 'live')),
      customer text COLLATE "C" NOT NULL,
      -- The types that the customer may choose. Null: all.
      event_types text[],
      accent_color text,
      color_scheme text,
      -- Of the link. Null: it was used.
      code_hash bytea UNIQUE CHECK (octet_length(code_hash) = 32),
      token_hash bytea UNIQUE CHECK (octet_length(token_hash) = 32),
      created_by_type text NOT NULL,
      created_by_id text COLLATE "C" NOT NULL,
      created_at timestamptz(3) NOT NULL,
      opened_at timestamptz(3),
      last_used_at timestamptz(3),
      -- When it ends if it is not used before, and at the latest.
      ends_at timestamptz(3) NOT NULL,
      expires_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, id),
      CHECK ((token_hash IS NULL) = (code_hash IS NOT NULL)),
      CHECK ((opened_at IS NULL) = (code_hash IS NOT NULL))
    );
    CREATE INDEX portal_sessions_by_mode ON portal_sessions (account_id, mode, id);
    CREATE INDEX portal_sessions_by_customer ON portal_sessions (account_id, mode, customer, id);
    CREATE INDEX portal_sessions_by_end ON portal_sessions (ends_at);

    CREATE INDEX webhooks_by_customer ON webhooks (account_id, mode, (metadata ->> 'customer'), id)
      WHERE metadata ->> 'customer' IS NOT NULL;
  `)
    .execute(db)
}
