import { vi } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { insertLogs, type LogRow } from '../../server/request-logs/queries.ts'
import { newId } from '../../server/shared/ids.ts'
import type { TestDatabase } from './database.ts'
import { patienceMs } from './patience.ts'
import type { TestService } from './service.ts'

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

/** Waits until a request of the key of `service` is listed. Returns the id of the newest. */
export async function untilLogged(
  { client }: Pick<TestService, 'client'>,
  query: { status?: string },
): Promise<string> {
  return vi.waitFor(
    async () => {
      const { data } = await client.succeed(contract.requestLogs.list, { query })
      if (data[0] === undefined) throw new Error('no such request is listed')
      return data[0].id
    },
    { timeout: patienceMs },
  )
}
