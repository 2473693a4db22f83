import { type Kysely, sql } from 'kysely'

/**
 * The events of the outbox by kind, so that the fan-out can take the first ones of each. All events of a kind have the
 * same receivers. Blocks the outbox until the index is built, about two seconds for a million events.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE INDEX outbox_rows_by_kind ON outbox_rows (account_id, mode, type, event_id)`.execute(db)
}
