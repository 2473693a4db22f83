import { type Kysely, sql } from 'kysely'

/** Failures to sign in, counted for all processes together. A bounded number of rows, each for an hour. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE sign_in_failures (
      -- SHA-256 of the network of the client and the address, so that typed addresses are not kept.
      pair_hash bytea PRIMARY KEY,
      failures smallint NOT NULL,
      last_at timestamptz(3) NOT NULL
    );
    CREATE INDEX sign_in_failures_by_time ON sign_in_failures (last_at);
  `)
    .execute(db)
}
