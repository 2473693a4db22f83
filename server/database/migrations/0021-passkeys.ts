import { type Kysely, sql } from 'kysely'

/** Passkeys. A user may have no password. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE users ALTER COLUMN password_hash DROP NOT NULL;

    CREATE TABLE passkeys (
      id text COLLATE "C" PRIMARY KEY,
      user_id text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
      -- Chosen by the authenticator. A sign-in finds the passkey by it.
      credential_id bytea NOT NULL UNIQUE CHECK (octet_length(credential_id) BETWEEN 1 AND 1023),
      -- COSE. Source: RFC 9052 §7.
      public_key bytea NOT NULL CHECK (octet_length(public_key) <= 4096),
      -- Of the last signature. 0: the authenticator has none.
      counter bigint NOT NULL,
      transports text[] NOT NULL,
      is_synced boolean NOT NULL,
      name text NOT NULL,
      created_at timestamptz(3) NOT NULL,
      last_used_at timestamptz(3),
      -- When a signature had a counter that is not above the one stored.
      refused_at timestamptz(3)
    );
    CREATE INDEX passkeys_by_user ON passkeys (user_id, id);

    -- Challenges are signed, not stored. One that was used is kept until it expires, so that it is used once.
    CREATE TABLE used_challenges (
      challenge_hash bytea PRIMARY KEY CHECK (octet_length(challenge_hash) = 32),
      expires_at timestamptz(3) NOT NULL
    );
    CREATE INDEX used_challenges_by_end ON used_challenges (expires_at);
  `)
    .execute(db)
}
