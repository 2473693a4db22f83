import { auditLogDays } from '../../contract/audit-log.ts'
import type { Db } from '../database/connection.ts'
import { deleteEntries } from './queries.ts'

/** Most entries deleted by one statement, which holds its locks for some milliseconds. */
const chunkSize = 2_000

/** Deletes entries of all accounts that are older than `auditLogDays`. Returns how many. */
export async function deleteOldEntries(db: Db, now: Date): Promise<number> {
  const until = new Date(now.getTime() - auditLogDays * 24 * 3_600_000)
  for (let deleted = 0; ; ) {
    const count = await deleteEntries(db, until, chunkSize)
    deleted += count
    if (count < chunkSize) return deleted
  }
}
