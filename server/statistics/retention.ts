import { sql } from 'kysely'
import { hourlyDays } from '../../contract/statistics.ts'
import type { Db } from '../database/connection.ts'

/** Maximum number of rows deleted by one statement, which holds its locks for some milliseconds. */
const chunkSize = 2_000
const dayMs = 24 * 3_600_000

/**
 * Returns the time since which figures are kept: by day for `keptMs`, by hour for 31 days at most. The hour or day that
 * the time lies in is kept whole.
 */
export function keptSince(step: 'hour' | 'day', now: Date, keptMs: number): Date {
  const ms = step === 'hour' ? Math.min(keptMs, hourlyDays * dayMs) : keptMs
  const stepMs = step === 'hour' ? 3_600_000 : dayMs
  return new Date(Math.floor((now.getTime() - ms) / stepMs) * stepMs)
}

/** Deletes the hours and days of all accounts that are past their retention. */
export async function deleteOldFigures(db: Db, now: Date, keptMs: number): Promise<void> {
  for (const step of ['hour', 'day'] as const) {
    const until = keptSince(step, now, keptMs)
    while ((await deleteBefore(db, step, until)) === chunkSize);
  }
}

async function deleteBefore(db: Db, step: 'hour' | 'day', until: Date): Promise<number> {
  const statement =
    step === 'hour'
      ? sql`
          DELETE FROM statistics_hours WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM statistics_hours WHERE hour < ${until} ORDER BY hour LIMIT ${chunkSize} FOR UPDATE SKIP LOCKED
          ))
        `
      : sql`
          DELETE FROM statistics_days WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM statistics_days WHERE day < ${until} ORDER BY day LIMIT ${chunkSize} FOR UPDATE SKIP LOCKED
          ))
        `
  const { numAffectedRows } = await statement.execute(db)
  return Number(numAffectedRows ?? 0n)
}
