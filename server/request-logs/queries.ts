import { type RawBuilder, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { plainArray, textArrays } from '../database/arrays.ts'
import type { Db, Handle } from '../database/connection.ts'
import type { RequestLogsTable } from '../database/tables/request-logs.ts'
import type { Scope } from '../shared/scope.ts'

export type LogRow = RequestLogsTable

/** Bytes of an account and mode. */
export type ScopeBytes = Scope & { bytes: number }

/**
 * Adds rows with one statement, and their bytes to those of the day. Returns the bytes of the day of each scope. Rows
 * that are there stay, so that a batch may be written again; its bytes are counted again.
 *
 * @param added Bytes by scope, sorted by account and mode: processes that add to the same rows must do it in one order.
 * @param day In UTC.
 */
export async function insertLogs(
  db: Db,
  rows: readonly LogRow[],
  { added, day }: { added: readonly ScopeBytes[]; day: Date },
): Promise<ScopeBytes[]> {
  const texts = await textArrays({
    keyName: rows.map((row) => row.key_name),
    path: rows.map((row) => row.path),
    ipAddress: rows.map((row) => row.ip_address),
    requestBody: rows.map((row) => row.request_body),
    errorDetails: rows.map((row) => row.error_details),
    route: rows.map((row) => row.route),
  })
  const { rows: counted } = await sql<{ account_id: string; mode: Mode; bytes: string }>`
    WITH written AS (
      INSERT INTO request_logs (account_id, mode, id, key_id, key_name, method, route, path, status, duration_ms,
        error_code, ip_address, request_body, error_details)
      SELECT * FROM unnest(
        ${plainArray(rows.map((row) => row.account_id))}::text[],
        ${plainArray(rows.map((row) => row.mode))}::text[],
        ${plainArray(rows.map((row) => row.id))}::text[],
        ${plainArray(rows.map((row) => row.key_id))}::text[],
        ${texts.keyName}::text[],
        ${plainArray(rows.map((row) => row.method))}::text[],
        ${texts.route}::text[],
        ${texts.path}::text[],
        ${plainArray(rows.map((row) => row.status))}::smallint[],
        ${plainArray(rows.map((row) => row.duration_ms))}::real[],
        ${plainArray(rows.map((row) => row.error_code))}::text[],
        ${texts.ipAddress}::text[],
        ${texts.requestBody}::text[],
        ${texts.errorDetails}::text[]
      )
      ON CONFLICT DO NOTHING
    )
    INSERT INTO request_log_days AS days (account_id, mode, day, bytes)
    SELECT account_id, mode, ${dayOf(day)}::date, bytes FROM unnest(
      ${plainArray(added.map(({ accountId }) => accountId))}::text[],
      ${plainArray(added.map(({ mode }) => mode))}::text[],
      ${plainArray(added.map(({ bytes }) => bytes))}::bigint[]
    ) AS added (account_id, mode, bytes)
    ON CONFLICT (account_id, mode, day) DO UPDATE SET bytes = days.bytes + excluded.bytes
    RETURNING account_id, mode, bytes
  `.execute(db)
  return counted.map(({ account_id, mode, bytes }) => ({ accountId: account_id, mode, bytes: Number(bytes) }))
}

/** Returns the date in UTC. */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10)
}

const listed = sql.raw('id, mode, key_id, key_name, method, route, path, status, duration_ms, error_code, ip_address')

export type ListedRow = Omit<LogRow, 'account_id' | 'request_body' | 'error_details'>

export type LogPage = {
  /** Only rows of this key. Null: of all. */
  keyId: string | null
  /** Only rows with one of these statuses, which are those of failures. Null: with any. */
  statuses: readonly number[] | null
  /** Only rows with lower ids, and with ids from `firstId` on. */
  below: string
  firstId: string
  limit: number
}

/** Returns rows of a scope, newest first. For each status, reads at most `limit` rows of an index of failures. */
export async function selectLogs(handle: Handle, scope: Scope, page: LogPage): Promise<ListedRow[]> {
  const { keyId, statuses, below, firstId, limit } = page
  const ofKey: Part[] = keyId === null ? [] : [['key_id', sql`${keyId}`]]
  const newest = (parts: Part[], and = sql``) => {
    const columns = sql.join([...parts, ['id'] as const].map(([column]) => sql.ref(`l.${column}`)))
    const values = sql.join(parts.map(([, value]) => value))
    // Row comparisons, so that only the index of these columns has the order, whatever the statistics say.
    return sql<ListedRow>`
      SELECT ${listed} FROM request_logs l
      WHERE (${columns}) < (${values}, ${below}) AND (${columns}) >= (${values}, ${firstId}) ${and}
      ORDER BY ${descending(parts)} LIMIT ${limit}`
  }
  const ofScope: Part[] = [
    ['account_id', sql`${scope.accountId}`],
    ['mode', sql`${scope.mode}`],
  ]
  if (statuses === null) return (await newest([...ofScope, ...ofKey]).execute(handle)).rows
  const failed = newest(
    [...ofScope, ...ofKey, ['status', sql`wanted.status`]],
    sql`AND (l.status < 200 OR l.status > 299)`,
  )
  const { rows } = await sql<ListedRow>`
    SELECT found.* FROM unnest(${statuses}::smallint[]) AS wanted (status) CROSS JOIN LATERAL (${failed}) found
    ORDER BY found.id DESC LIMIT ${limit}
  `.execute(handle)
  return rows
}

/** A column of an index, and the value that rows must have in it. */
type Part = readonly [column: string, value: RawBuilder<unknown>]

function descending(parts: readonly Part[]): RawBuilder<unknown> {
  return sql.join([...parts.map(([column]) => column), 'id'].map((column) => sql`${sql.ref(`l.${column}`)} DESC`))
}

export async function findLog(handle: Handle, { accountId, mode }: Scope, id: string): Promise<LogRow | undefined> {
  return handle
    .selectFrom('request_logs')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Deletes up to `limit` rows of all accounts with ids below `bound`. Returns how many there were. */
export async function deleteLogsBelow(db: Db, bound: string, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    DELETE FROM request_logs WHERE (account_id, mode, id) IN (
      SELECT old.account_id, old.mode, old.id
      FROM (SELECT DISTINCT account_id, mode FROM request_log_days) scope
      CROSS JOIN LATERAL (
        SELECT l.account_id, l.mode, l.id FROM request_logs l
        WHERE l.account_id = scope.account_id AND l.mode = scope.mode AND l.id < ${bound}
        ORDER BY l.id LIMIT ${limit} FOR UPDATE SKIP LOCKED
      ) old
      LIMIT ${limit}
    )
  `.execute(db)
  return Number(numAffectedRows ?? 0n)
}

/** Deletes the counts of bytes of days before that of `until`. */
export async function deleteDaysBefore(db: Db, until: Date): Promise<void> {
  await sql`DELETE FROM request_log_days WHERE day < ${dayOf(until)}::date`.execute(db)
}
