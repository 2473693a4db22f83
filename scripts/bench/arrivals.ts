import { sql } from 'kysely'
import type { Receiver, World } from './lab.ts'

/* The times at which events were committed and first arrived, and their statistics. Milliseconds since 1970. */

export type Arrival = {
  accountId: string
  committedAt: number
  /** Null: not arrived yet. */
  arrivedAt: number | null
}

/**
 * Returns the events of some accounts that were committed at `since` or later, in commit order. The database needs
 * `track_commit_timestamp`, and the receiver must have recorded arrivals since then.
 */
export async function arrivalsOf(
  { db }: World,
  receiver: Receiver,
  { accountIds, since }: { accountIds: readonly string[]; since: number },
): Promise<Arrival[]> {
  const { rows } = await sql<{ id: string; account_id: string; at: number }>`
    SELECT * FROM (
      SELECT id, account_id, (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)::float AS at
      FROM events WHERE account_id = ANY(${accountIds}::text[])
    ) AS event WHERE at >= ${since} ORDER BY at
  `.execute(db)
  const arrived = new Map(await receiver.arrivals())
  return rows.map(({ id, account_id, at }) => ({
    accountId: account_id,
    committedAt: at,
    arrivedAt: arrived.get(id) ?? null,
  }))
}

/** Returns the milliseconds from commit to arrival, or to `now` for events that have not arrived. */
export function waitsOf(arrivals: readonly Arrival[], now: number): number[] {
  return arrivals.map(({ committedAt, arrivedAt }) => (arrivedAt ?? now) - committedAt)
}

/**
 * Returns the milliseconds from a recovery (`from`) until new deliveries are on time again: until the commit of the
 * first of `inARow` consecutive events that each arrived within `normalMs`. Infinity: not yet.
 */
export function recoveredAfter(
  arrivals: readonly Arrival[],
  { from, normalMs, inARow }: { from: number; normalMs: number; inARow: number },
): number {
  const fresh = arrivals.filter(({ committedAt }) => committedAt >= from)
  let first = 0
  for (const [index, { committedAt, arrivedAt }] of fresh.entries()) {
    const isInTime = arrivedAt !== null && arrivedAt - committedAt <= normalMs
    if (!isInTime) first = index + 1
    else if (index + 1 - first >= inARow) return (fresh[first]?.committedAt ?? Number.NaN) - from
  }
  return Number.POSITIVE_INFINITY
}

/**
 * Returns the milliseconds from a burst (`from`) until no event has waited longer than `normalMs`. Infinity: an event
 * still waits.
 */
export function caughtUpAfter(
  arrivals: readonly Arrival[],
  { from, normalMs }: { from: number; normalMs: number },
): number {
  let at = from + normalMs
  for (const { committedAt, arrivedAt } of arrivals) {
    if (committedAt + normalMs > at) break
    at = Math.max(at, arrivedAt ?? Number.POSITIVE_INFINITY)
  }
  return at - from
}
