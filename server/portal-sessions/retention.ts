import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { deleteEnded } from './queries.ts'

/** Most sessions deleted by one statement, which holds its locks for some milliseconds. */
const chunkSize = 2_000

/** Deletes the portal sessions of all accounts that have ended. */
export async function deleteEndedPortalSessions({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  const now = clock.now()
  while ((await deleteEnded(db, now, chunkSize)) === chunkSize);
}
