import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'

/** Failures of a pair of address and client. */
export type FailureCount = { failures: number; lastAt: Date }

export type TryOptions = {
  /** Identifies the pair. */
  pairHash: Buffer
  now: Date
  /** Failures before this time are forgotten. */
  since: Date
  /** Milliseconds to wait after so many failures, by their number. More failures than that are not counted. */
  delaysMs: readonly number[]
}

/**
 * Counts a try as a failure, unless the last one is too recent. Returns true when it was counted. One statement, so that
 * of tries at the same time, in all processes, no more pass than one after another.
 */
export async function countTry(db: Db, { pairHash, now, since, delaysMs }: TryOptions): Promise<boolean> {
  const { rows } = await sql`
    INSERT INTO sign_in_failures AS present (pair_hash, failures, last_at) VALUES (${pairHash}, 1, ${now})
    ON CONFLICT (pair_hash) DO UPDATE SET
      failures = CASE WHEN present.last_at <= ${since} THEN 1 ELSE least(present.failures + 1, ${delaysMs.length - 1}) END,
      last_at = excluded.last_at
    WHERE present.last_at <= ${since}
      OR present.last_at + (${delaysMs}::float8[])[present.failures + 1] * interval '1 millisecond' <= ${now}
    RETURNING failures
  `.execute(db)
  return rows.length > 0
}

export async function findFailures(db: Db, pairHash: Buffer): Promise<FailureCount | undefined> {
  return db
    .selectFrom('sign_in_failures')
    .select(['failures', 'last_at as lastAt'])
    .where('pair_hash', '=', pairHash)
    .executeTakeFirst()
}

/** Takes one failure back. */
export async function uncountTry(db: Db, pairHash: Buffer): Promise<void> {
  await db
    .updateTable('sign_in_failures')
    .set(({ eb }) => ({ failures: eb('failures', '-', 1) }))
    .where('pair_hash', '=', pairHash)
    .where('failures', '>', 0)
    .execute()
}

export async function deleteFailures(db: Db, pairHash: Buffer): Promise<void> {
  await db.deleteFrom('sign_in_failures').where('pair_hash', '=', pairHash).execute()
}

/** Deletes the pairs whose last failure was before `since`, and the oldest ones, so that at most `kept` are left. */
export async function deleteOldFailures(db: Db, { since, kept }: { since: Date; kept: number }): Promise<void> {
  await db.deleteFrom('sign_in_failures').where('last_at', '<=', since).execute()
  await sql`
    DELETE FROM sign_in_failures WHERE pair_hash = ANY(ARRAY(
      SELECT pair_hash FROM sign_in_failures ORDER BY last_at DESC OFFSET ${kept}
    ))
  `.execute(db)
}
