import { type Kysely, sql } from 'kysely'

/** The users of an identity provider (OpenID Connect) that users are linked to. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- Issuer and subject together never change and are never given to another person.
    CREATE TABLE user_identities (
      id text COLLATE "C" PRIMARY KEY,
      user_id text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
      issuer text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      -- What the provider called the user when they were linked. For people to read: it proves nothing.
      label text,
      created_at timestamptz(3) NOT NULL,
      last_used_at timestamptz(3),
      UNIQUE (issuer, subject),
      -- One link for each provider.
      UNIQUE (user_id, issuer)
    );
  `)
    .execute(db)
}
