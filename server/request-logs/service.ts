import { errorTable } from '../../contract/errors.ts'
import type { Page } from '../../contract/pagination.ts'
import type { RequestLog, RequestLogDetails, RequestLogQuery } from '../../contract/request-logs.ts'
import type { Handle } from '../database/connection.ts'
import { notFound } from '../shared/errors.ts'
import { firstIdAt, timeOf } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { findLog, type ListedRow, type LogRow, selectLogs } from './queries.ts'
import { abortedStatus } from './row.ts'

/** Reading the requests to the API. They are written by `startRequestLogs`. */
export type RequestLogService = {
  /** Returns requests of the scope, newest first. */
  list(handle: Handle, scope: Scope, query: RequestLogQuery): Promise<Page<RequestLog>>
  /** Returns a request. Throws `not_found`. */
  get(handle: Handle, scope: Scope, id: string): Promise<RequestLogDetails>
}

export function createRequestLogService(): RequestLogService {
  return {
    async list(handle, scope, { limit, cursor, since, until, status, key }) {
      const rows = await selectLogs(handle, scope, {
        keyId: key ?? null,
        statuses: statusesOf(status),
        below: lowest(decodeCursor('request', cursor), until && firstIdAt('request', new Date(until))),
        firstId: firstIdAt('request', since === undefined ? new Date(0) : new Date(since)),
        limit: limit + 1,
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toLog })
    },
    async get(handle, scope, id) {
      const row = await findLog(handle, scope, id)
      if (row === undefined) throw notFound('request', id)
      return { ...toLog(row), requestBody: jsonOf(row.request_body), error: errorOf(row) }
    },
  }
}

/** Statuses of failures, with which rows are read one by one. */
const failures: readonly number[] = [
  ...new Set([abortedStatus, ...Object.values(errorTable).map(({ status }) => status)]),
]

/** Returns the statuses that a filter asks for. Null: all there are. */
function statusesOf(given: RequestLogQuery['status']): readonly number[] | null {
  if (given === undefined) return null
  if (given === 'failed') return failures
  if (given === 'aborted') return [abortedStatus]
  if (!given.endsWith('xx')) return [Number(given)]
  return failures.filter((status) => Math.floor(status / 100) === Number(given[0]))
}

/** Above all identifiers. */
const highest = 'req_~'

function lowest(...ids: (string | undefined)[]): string {
  return ids.reduce<string>((least, id) => (id !== undefined && id < least ? id : least), highest)
}

function toLog(row: ListedRow): RequestLog {
  return {
    id: row.id,
    at: timeOf(row.id).toISOString(),
    mode: row.mode,
    method: row.method,
    route: row.route,
    path: row.path,
    status: row.status === abortedStatus ? null : row.status,
    durationMs: row.duration_ms,
    key: { id: row.key_id, name: row.key_name },
    errorCode: row.error_code,
    ipAddress: row.ip_address,
  }
}

function errorOf({ error_code: code, error_details: details }: LogRow): RequestLogDetails['error'] {
  if (code === null) return null
  return { code, message: errorTable[code].meaning, details: jsonOf(details) ?? [] }
}

function jsonOf(text: string | null) {
  return text === null ? null : JSON.parse(text)
}
