import { type Kysely, sql } from 'kysely'

/**
 * The processes that run, for the operator. They belong to no account. Not logged: after a crash of PostgreSQL the table
 * is empty, and each process soon tells again.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE UNLOGGED TABLE processes (
      id uuid PRIMARY KEY,
      host text NOT NULL,
      pid integer NOT NULL,
      roles text[] NOT NULL,
      version text NOT NULL,
      node text NOT NULL,
      started_at timestamptz(3) NOT NULL,
      seen_at timestamptz(3) NOT NULL
    ) WITH (fillfactor = 50);
  `)
    .execute(db)
}
