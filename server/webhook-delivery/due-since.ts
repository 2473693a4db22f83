import { sql } from 'kysely'

/**
 * Returns an expression for the time since which a due delivery waits for its attempt. A first attempt that was in hand
 * was due before the delivery was written.
 *
 * @param table The name of the deliveries table in the statement.
 */
export function dueSince(table: string) {
  const column = (name: string) => sql.ref(`${table}.${name}`)
  const isFirst = sql`${column('run')} = 0 AND ${column('attempt_count')} = 0`
  return sql`LEAST(${column('next_attempt_at')}, CASE WHEN ${isFirst} THEN ${column('queued_at')} END)`
}
