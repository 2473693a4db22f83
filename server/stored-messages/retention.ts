import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { firstIdAt } from '../shared/ids.ts'

/** Deletes captured and inbound messages that were kept before `until`. */
export async function deleteOldMessages(db: Db, until: Date): Promise<void> {
  await sql`DELETE FROM captured_messages WHERE id < ${firstIdAt('capturedMessage', until)}`.execute(db)
  await sql`DELETE FROM inbound_messages WHERE id < ${firstIdAt('inboundMessage', until)}`.execute(db)
}
