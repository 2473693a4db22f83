import { type Kysely, sql } from 'kysely'

/**
 * People who sign in to the dashboard. A user, their sessions and recovery codes belong to no account: a user may be a
 * member of several. Of tokens and codes only hashes are stored.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE users (
      id text COLLATE "C" PRIMARY KEY,
      -- In lower case.
      email text COLLATE "C" NOT NULL UNIQUE,
      name text NOT NULL,
      password_hash text NOT NULL,
      -- Encrypted. In use from totp_confirmed_at on.
      totp_secret bytea,
      totp_confirmed_at timestamptz(3),
      -- The newest step whose code was used: a code is good once.
      totp_last_step integer,
      totp_failures integer NOT NULL DEFAULT 0,
      totp_failed_at timestamptz(3),
      is_operator boolean NOT NULL DEFAULT false,
      created_at timestamptz(3) NOT NULL,
      last_signed_in_at timestamptz(3),
      CHECK (totp_confirmed_at IS NULL OR totp_secret IS NOT NULL)
    );

    CREATE TABLE recovery_codes (
      user_id text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
      code_hash bytea NOT NULL CHECK (octet_length(code_hash) = 32),
      PRIMARY KEY (user_id, code_hash)
    );

    CREATE TABLE memberships (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      user_id text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
      role text NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'marketer', 'viewer')),
      created_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, user_id)
    );
    CREATE INDEX memberships_by_user ON memberships (user_id, account_id);

    CREATE TABLE user_sessions (
      id text COLLATE "C" PRIMARY KEY,
      user_id text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
      token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
      created_at timestamptz(3) NOT NULL,
      last_used_at timestamptz(3) NOT NULL,
      -- At the latest: it ends sooner when it is not used.
      expires_at timestamptz(3) NOT NULL,
      ip_address text NOT NULL,
      user_agent text NOT NULL
    );
    CREATE INDEX user_sessions_by_user ON user_sessions (user_id, id);
    CREATE INDEX user_sessions_by_end ON user_sessions (expires_at);
    CREATE INDEX user_sessions_by_use ON user_sessions (last_used_at);

    -- A row is deleted when its link is used. A link to reset a password belongs to a user and to no account.
    CREATE TABLE user_links (
      id text COLLATE "C" PRIMARY KEY,
      kind text NOT NULL CHECK (kind IN ('first_user', 'invitation', 'password_reset')),
      token_hash bytea NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
      account_id text COLLATE "C" REFERENCES accounts ON DELETE CASCADE,
      user_id text COLLATE "C" REFERENCES users ON DELETE CASCADE,
      email text COLLATE "C",
      role text CHECK (role IN ('owner', 'admin', 'developer', 'marketer', 'viewer')),
      -- The user who invited. Null: the command line, or the first start.
      created_by text COLLATE "C" REFERENCES users ON DELETE CASCADE,
      created_at timestamptz(3) NOT NULL,
      expires_at timestamptz(3) NOT NULL,
      CHECK ((kind = 'password_reset') = (user_id IS NOT NULL)),
      CHECK ((kind = 'password_reset') = (account_id IS NULL)),
      CHECK ((kind = 'password_reset') = (role IS NULL)),
      CHECK ((kind = 'invitation') = (email IS NOT NULL))
    );
    CREATE INDEX user_links_by_account ON user_links (account_id, id);
    CREATE INDEX user_links_by_user ON user_links (user_id) WHERE user_id IS NOT NULL;
    CREATE INDEX user_links_by_author ON user_links (created_by) WHERE created_by IS NOT NULL;
    CREATE INDEX user_links_by_end ON user_links (expires_at);
  `)
    .execute(db)
}
