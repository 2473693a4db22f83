import { requestLogDays } from '../../contract/request-logs.ts'
import type { Db } from '../database/connection.ts'
import { firstIdAt } from '../shared/ids.ts'
import { deleteDaysBefore, deleteLogsBelow } from './queries.ts'

/** Most rows deleted by one statement, which holds its locks for some milliseconds. */
const chunkSize = 2_000
const dayMs = 24 * 3_600_000

/** Deletes requests of all accounts that are older than `requestLogDays`. Returns how many. */
export async function deleteOldRequestLogs(db: Db, now: Date): Promise<number> {
  const bound = firstIdAt('request', new Date(now.getTime() - requestLogDays * dayMs))
  let deleted = 0
  for (let count = chunkSize; count === chunkSize; deleted += count) {
    count = await deleteLogsBelow(db, bound, chunkSize)
  }
  // Only then: they say whose rows are deleted. A request may end a day after it began.
  await deleteDaysBefore(db, new Date(now.getTime() - (requestLogDays + 2) * dayMs))
  return deleted
}
