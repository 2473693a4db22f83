import { sql } from 'kysely'
import type { Db, Handle } from '../database/connection.ts'

export const windowMs = 60_000

export type Lease = {
  /** Requests granted: fewer than asked for close to the limit, 0 when it is used up. */
  granted: number
  /** Requests left in the window for all processes, without the granted ones. */
  left: number
}

/**
 * Leases up to `wanted` of the `limit` requests that an account may send in the window that began at `start`.
 *
 * Each call adds `wanted` to one counter, which gives it a range of its own. The part of the range within the limit is
 * granted, so all calls together never get more than `limit`, also when the last range exceeds it.
 */
export async function leaseRequests(
  db: Db,
  { accountId, start, wanted, limit }: { accountId: string; start: Date; wanted: number; limit: number },
): Promise<Lease> {
  const { rows } = await sql<{ used: number }>`
    INSERT INTO rate_limit_windows AS counter (account_id, window_start, used)
    VALUES (${accountId}, ${start}, ${wanted})
    ON CONFLICT (account_id, window_start) DO UPDATE SET used = counter.used + excluded.used
    WHERE counter.used < ${limit}
    RETURNING used
  `.execute(db)
  const [row] = rows
  if (row === undefined) return { granted: 0, left: 0 }
  return { granted: Math.min(wanted, limit - (row.used - wanted)), left: Math.max(0, limit - row.used) }
}

/** Counted requests are of no use once their window is over. Milliseconds. */
const keptMs = 3_600_000

/**
 * Returns the requests that the processes have leased for an account in each window since a time, at most an hour ago,
 * the newest first. The last lease of a window may exceed the limit.
 */
export async function selectWindows(
  handle: Handle,
  { accountId, since }: { accountId: string; since: Date },
): Promise<{ start: Date; used: number }[]> {
  return handle
    .selectFrom('rate_limit_windows')
    .select(['window_start as start', 'used'])
    .where('account_id', '=', accountId)
    .where('window_start', '>', since)
    .orderBy('window_start', 'desc')
    .execute()
}

/** Deletes counts of windows that ended long ago. */
export async function deleteOldWindows(db: Db, now: Date): Promise<void> {
  await db
    .deleteFrom('rate_limit_windows')
    .where('window_start', '<', new Date(now.getTime() - keptMs))
    .execute()
}
