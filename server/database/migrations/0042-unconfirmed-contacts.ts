import { type Kysely, sql } from 'kysely'

/** Finds the contacts that never confirmed, which are deleted after a while. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE INDEX contacts_pending ON contacts ((coalesce(confirmation_sent_at, created_at))) WHERE status = 'pending';
  `)
    .execute(db)
}
