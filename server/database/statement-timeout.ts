import { sql } from 'kysely'
import { hasCode } from '../lib/error-codes.ts'
import type { Trx } from './connection.ts'

/** SQLSTATE. Source: PostgreSQL documentation, appendix A. */
const queryCanceled = '57014'

/** Limits the time of each statement that follows in a transaction. Milliseconds. A longer one fails: see `isTimedOut`. */
export async function limitStatements(trx: Trx, ms: number): Promise<void> {
  await sql`SELECT set_config('statement_timeout', ${String(ms)}, true)`.execute(trx)
}

/** Returns true when a statement took longer than it may. Its transaction can only be rolled back. */
export function isTimedOut(error: unknown): boolean {
  return hasCode(error, queryCanceled)
}
