import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { deleteExpiredIdempotencyKeys } from './idempotency-keys.ts'
import { deleteOldWindows } from './rate-limit-windows.ts'

/** Deletes stored responses of idempotent requests, and counts of requests, that are no longer needed. */
export async function deleteExpired({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  await deleteExpiredIdempotencyKeys({ db, clock })
  await deleteOldWindows(db, clock.now())
}
