import { type Kysely, sql } from 'kysely'

/**
 * Keys of sending domains beside those that sign. Those stay in `domains`, where older processes that still run
 * read them.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- What the keys refer to. There are few domains, so the lock is short.
    ALTER TABLE domains ADD CONSTRAINT domains_of_account UNIQUE (account_id, id);
    -- Has the same columns.
    DROP INDEX domains_by_account;

    CREATE TABLE domain_keys (
      account_id text COLLATE "C" NOT NULL,
      domain_id text COLLATE "C" NOT NULL,
      id bigint GENERATED ALWAYS AS IDENTITY,
      -- 'next': they sign once their records are seen. 'retired': they signed before.
      state text NOT NULL CHECK (state IN ('next', 'retired')),
      rsa_selector text NOT NULL,
      rsa_public_key text NOT NULL,
      -- Null: retired keys sign nothing any more, so their private keys are gone.
      rsa_private_key bytea,
      ed25519_selector text NOT NULL,
      ed25519_public_key text NOT NULL,
      ed25519_private_key bytea,
      -- What the last check found of the records of the next keys, by purpose.
      findings jsonb NOT NULL DEFAULT '{}',
      created_at timestamptz(3) NOT NULL,
      -- When the records of the next keys are looked for; null: only with the domain.
      next_check_at timestamptz(3),
      retired_at timestamptz(3),
      PRIMARY KEY (account_id, domain_id, id),
      FOREIGN KEY (account_id, domain_id) REFERENCES domains (account_id, id) ON DELETE CASCADE,
      CHECK (state = 'retired' OR rsa_private_key IS NOT NULL AND ed25519_private_key IS NOT NULL),
      CHECK ((state = 'retired') = (retired_at IS NOT NULL))
    );
    CREATE UNIQUE INDEX domain_keys_next ON domain_keys (account_id, domain_id) WHERE state = 'next';
    CREATE INDEX domain_keys_to_check ON domain_keys (next_check_at) WHERE next_check_at IS NOT NULL;
  `)
    .execute(db)
}
