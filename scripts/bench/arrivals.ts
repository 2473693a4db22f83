import { sql } from 'kysely'
import type { Receiver, World } from './lab.ts'

/* When events were committed and when they first arrived, and what is made of that. Times: milliseconds since 1970. */

export type Arrival = {
  accountId: string
  committedAt: number
  /** Null: it has not arrived yet. */
  arrivedAt: number | null
}

/**
 * The events of some accounts that were committed at `since` or later, in the order of their commits. The database
 * needs `track_commit_timestamp`, and the receiver keeps arrivals since then.
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

/** Milliseconds from commit to arrival. What has not arrived has waited until `now`. */
export function waitsOf(arrivals: readonly Arrival[], now: number): number[] {
  return arrivals.map(({ committedAt, arrivedAt }) => (arrivedAt ?? now) - committedAt)
}

/**
 * Milliseconds from a recovery until new deliveries arrive in normal time again: until the commit of the first event
 * that did and with which `inARow` did, one after the other. Infinity: they do not yet.
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
 * Milliseconds from a burst until nothing waits longer than `normalMs`: until all that was committed that long ago
 * has arrived. Infinity: something still waits.
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
