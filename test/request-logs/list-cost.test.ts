import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertLogs, type LogPage, selectLogs } from '../../server/request-logs/queries.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { logRow } from '../support/request-logs.ts'
import { plannerStates, rowsRead } from '../support/rows-read.ts'

/* A page of the request logs reads few rows, however many there are, whatever the statistics of the table are. */

const many = 10_000
const limit = 50
const keys = { common: newId('apiKey', new Date()), old: newId('apiKey', new Date()) }
const accountId = newId('account', new Date())

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  const { db } = database
  await sql`ALTER TABLE request_logs SET (autovacuum_enabled = off)`.execute(db)
  const rows = Array.from({ length: many }, (_, index) =>
    logRow({
      account_id: accountId,
      key_id: index < 10 ? keys.old : keys.common,
      status: index < 20 ? 404 : 200,
    }),
  )
  // The statistics say of the first account in the order of the indexes that it has next to nothing.
  const ofOthers = Array.from({ length: 12_000 }, (_, index) => logRow({ account_id: `${accountId}${index % 120}` }))
  await insertLogs(db, [...rows, ...ofOthers], { added: [], day: new Date() })
})
afterAll(() => database.drop())

const page = { keyId: null, statuses: null, below: '~', firstId: '', limit }

describe.each(plannerStates('^request_logs'))('where PostgreSQL %s', (_, statement) => {
  beforeAll(async () => {
    await sql.raw(statement).execute(database.db)
  })

  test.each<[string, Partial<LogPage>, number]>([
    ['of all', {}, limit],
    ['of a common key', { keyId: keys.common }, limit],
    ['of a key with old requests alone', { keyId: keys.old }, 10],
    ['of old failures', { statuses: [400, 404] }, 20],
    ['of old failures of a key', { keyId: keys.common, statuses: [400, 404] }, 10],
    ['of failures that there are none of', { keyId: keys.old, statuses: [500] }, 0],
  ])('a page %s reads few rows', async (_, part, count) => {
    const read = await rowsRead(database.db, async (handle) => {
      expect(await selectLogs(handle, { accountId, mode: 'live' }, { ...page, ...part })).toHaveLength(count)
    })
    expect(read).toBeLessThan(3 * limit)
  })
})
