import { exampleId } from '../../contract/ids.ts'
import { insertLogs, type LogRow } from '../../server/request-logs/queries.ts'
import { newId } from '../../server/shared/ids.ts'
import type { TestDatabase } from './database.ts'

/** The row of a request that succeeded. */
export function logRow(row: Partial<LogRow> & Pick<LogRow, 'account_id'>): LogRow {
  return {
    mode: 'live',
    id: newId('request', new Date()),
    key_id: exampleId('apiKey'),
    key_name: 'A key',
    method: 'GET',
    route: '/v1/events',
    path: '/v1/events',
    status: 200,
    duration_ms: 1.5,
    error_code: null,
    ip_address: '127.0.0.1',
    request_body: null,
    error_details: null,
    ...row,
  }
}

/** Puts a request into the request logs. Returns its id. */
export async function insertRequestLog(
  { db }: Pick<TestDatabase, 'db'>,
  { accountId, mode = 'live' }: { accountId: string; mode?: LogRow['mode'] },
): Promise<string> {
  const row = logRow({ account_id: accountId, mode })
  await insertLogs(db, [row], { added: [{ accountId, mode, bytes: 1_000 }], day: new Date() })
  return row.id
}
