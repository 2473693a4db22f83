import { type Kysely, sql } from 'kysely'

/** Properties that an account declares for people, and their values. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE contact_properties (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      key text COLLATE "C" NOT NULL,
      type text NOT NULL CHECK (type IN ('string', 'number', 'boolean', 'date')),
      fallback jsonb,
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      -- Not null: it is deleted, and its values are being taken from people.
      deleted_at timestamptz(3),
      -- The last person whose values were looked at for that.
      cleared_to text COLLATE "C" NOT NULL DEFAULT '',
      PRIMARY KEY (account_id, key)
    );
    CREATE INDEX contact_properties_deleted ON contact_properties (account_id, key) WHERE deleted_at IS NOT NULL;

    -- A constant default rewrites no row.
    ALTER TABLE subscribers ADD COLUMN properties jsonb NOT NULL DEFAULT '{}';
  `)
    .execute(db)
}
