import { type Kysely, sql } from 'kysely'

/** Attempts say whether their request was posted twice. Adds a constant default: no row is rewritten. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE attempts ADD COLUMN reposted boolean NOT NULL DEFAULT false`.execute(db)
}
