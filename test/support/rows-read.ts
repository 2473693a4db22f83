import { sql } from 'kysely'
import { type Db, inTransaction } from '../../server/database/connection.ts'

/**
 * The states of planner statistics in which a cost must be bounded, for `describe.each`: a name, and the statement that
 * brings the tables into it.
 *
 * @param pattern A regular expression for the names of the tables and their indexes.
 */
export const plannerStates = (pattern: string) =>
  [
    ['knows the tables', 'ANALYZE'],
    [
      'takes them to be empty',
      `UPDATE pg_class SET reltuples = 0 WHERE relname ~ '${pattern}' AND relkind IN ('r', 'i')`,
    ],
  ] as const

/** Returns the number of rows that `work` reads of all tables. It runs in a transaction. */
export async function rowsRead(db: Db, work: (handle: Db) => Promise<unknown>): Promise<number> {
  return inTransaction(db, async (trx) => {
    const read = async () => {
      const { rows } = await sql<{ count: number }>`
        SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 AS count FROM pg_stat_xact_user_tables
      `.execute(trx)
      return rows[0]?.count ?? Number.NaN
    }
    const before = await read()
    await work(trx as unknown as Db)
    return (await read()) - before
  })
}
