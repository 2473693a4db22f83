import { type RawBuilder, sql } from 'kysely'
import type { Handle } from './connection.ts'

/** Most rows that one statement looks through for those that a filter leaves. */
export const lookedThrough = 10_000

/** A page of a list whose filter no index serves. */
export type FittingPage<Row> = {
  rows: Row[]
  /** The id of the last row that was looked at, if there may be more after it. Null: `rows` is full, or the end. */
  lookedTo: string | null
}

export type FittingQuery = {
  /**
   * A SELECT of rows with an `id`, in descending order of it, which an index has. No LIMIT. It must not compute anything:
   * that would be done for every row that is looked at.
   */
  rows: RawBuilder<unknown>
  /** The filter, on the columns of `rows`. */
  fits: RawBuilder<boolean>
  /** Name of the page in `columns`. */
  as: string
  /** The columns to return, of the rows of the page only. */
  columns: RawBuilder<unknown>
  /** A left join with each row of the page. Default: none. */
  join?: RawBuilder<unknown>
  limit: number
  /** Most rows that are looked through. Default: 10,000. */
  looked?: number
}

/**
 * Returns the first rows that fit, of the next 10,000. So a filter that few rows fit, or none, costs no more than
 * reading 10,000 rows; the page then has fewer rows than `limit`, or none, and `lookedTo` says where to continue.
 */
export async function selectFitting<Row>(
  handle: Handle,
  { rows, fits, as, columns, join = sql``, limit, looked = lookedThrough }: FittingQuery,
): Promise<FittingPage<Row>> {
  // A subquery, so that the planner expects to read few of the rows, and uses the index instead of sorting.
  const most = sql`(SELECT ${looked}::bigint)`
  // One statement, so that the page and `lookedTo` are of the same snapshot. The rows are read until the page is full.
  const found = await sql<{ looked_to: string | null; is_row: boolean } & Row>`
    WITH page AS MATERIALIZED (
      SELECT *, true AS is_row FROM (${rows} LIMIT ${most}) AS looked WHERE ${fits} LIMIT ${limit}
    )
    SELECT ${columns}, is_row IS TRUE AS is_row, looked_to
    FROM (
      SELECT CASE WHEN (SELECT count(*) FROM page) < ${limit}
        THEN (SELECT id FROM (${rows}) AS looked OFFSET ${most} - 1 LIMIT 1) END AS looked_to
    ) AS bounds LEFT JOIN page AS ${sql.ref(as)} ON true ${join}
    ORDER BY ${sql.ref(`${as}.id`)} DESC
  `.execute(handle)
  return { rows: found.rows.filter((row) => row.is_row), lookedTo: found.rows[0]?.looked_to ?? null }
}

/**
 * Returns a condition for the rows of one owner with an id above `above` and below each of `below`. It is written as two
 * row comparisons, so that only an index by owner and id has their order, whatever the statistics say; of more
 * comparisons, an index scan would begin and end at one only.
 */
export function idsWithin(
  [ownerColumn, idColumn]: readonly [string, string],
  owner: string,
  { above = '', below }: { above?: string | undefined; below: readonly (string | undefined)[] },
): RawBuilder<boolean> {
  const key = sql`(${sql.ref(ownerColumn)}, ${sql.ref(idColumn)})`
  const [lowest = afterAllIds] = below.filter((id) => id !== undefined).toSorted()
  return sql`${key} > (${owner}, ${above}) AND ${key} < (${owner}, ${lowest})`
}

/** Returns the number of rows that `rows`, a SELECT without LIMIT, has: `most` at most, and reads no more. */
export async function countUpTo(handle: Handle, rows: RawBuilder<unknown>, most: number): Promise<number> {
  const counted = await sql<{ count: string }>`
    SELECT count(*) AS count FROM (${rows} LIMIT ${most}) AS counted
  `.execute(handle)
  return Number(counted.rows[0]?.count ?? 0)
}

/** Sorts after every id. */
export const afterAllIds = '~'
