import { type Kysely, sql } from 'kysely'

/** Keeps the conditions by which the recipients of a campaign are being listed. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Null: nothing is being listed by segments. What is being listed now gets them with its next step.
  await sql.raw('ALTER TABLE campaigns ADD COLUMN listed_segments json').execute(db)
}
