import { type Kysely, sql } from 'kysely'

/** Imports that subscribe their people to topics. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // No reference: the import stays when a topic is deleted.
  await sql`ALTER TABLE imports ADD COLUMN topic_ids text[] COLLATE "C" NOT NULL DEFAULT '{}'`.execute(db)
}
