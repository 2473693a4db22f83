import { type Kysely, sql } from 'kysely'
import type { Handle } from '../connection.ts'
import { createUnlessLarge } from '../large-indexes.ts'

/**
 * Gives everything that only one kind of key sees its mode. What is there becomes live, and so does what
 * an older process still writes beside this version.
 *
 * A constant default needs no rewrite of the table (PostgreSQL 11 and later), and a check that is not
 * validated needs no scan: every lock is held for moments, whatever the size of the tables.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // The outbox first, as a fan-out locks them.
  for (const table of ['outbox', 'webhooks', 'events', 'captured_messages', 'inbound_messages']) {
    await sql`
      ALTER TABLE ${sql.table(table)}
        ADD COLUMN mode text NOT NULL DEFAULT 'live',
        ADD CONSTRAINT ${sql.ref(`${table}_mode_check`)} CHECK (mode IN ('test', 'live')) NOT VALID
    `.execute(db)
  }
  await createUnlessLarge(db as unknown as Handle, 'emails_by_mode')
}
