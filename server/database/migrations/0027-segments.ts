import { type Kysely, sql } from 'kysely'

/** Conditions that choose people of an audience. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- Unique now, so that rows can refer to an audience by account and id. There are few audiences.
    DROP INDEX audiences_by_account;
    CREATE UNIQUE INDEX audiences_by_account ON audiences (account_id, id);

    CREATE TABLE segments (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      audience_id text COLLATE "C" NOT NULL,
      name text NOT NULL,
      -- As the contract describes them.
      conditions json NOT NULL,
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, id),
      FOREIGN KEY (account_id, audience_id) REFERENCES audiences (account_id, id) ON DELETE CASCADE
    );
    CREATE INDEX segments_by_audience ON segments (account_id, audience_id, id);
  `)
    .execute(db)
}
