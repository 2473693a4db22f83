import { sql } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { connect, inTransaction } from '../../server/database/connection.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startTestService } from '../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

function newPool() {
  const db = connect({ connectionString: database.connectionString, max: 1, onError: () => undefined })
  onTestFinished(() => db.destroy())
  return db
}

test('every connection of the service asks to be ended when its side is silent or gone', async () => {
  let proxy: TcpProxy | undefined
  await using service = await startTestService({
    async connectionString(direct) {
      const url = new URL(direct)
      proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) })
      url.host = `127.0.0.1:${proxy.port}`
      return url.href
    },
  })
  onTestFinished(() => proxy?.[Symbol.asyncDispose]())
  await service.client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })
  await expect.poll(() => proxy?.sent.join().includes('LISTEN "postern_outbox"')).toBe(true)
  const connections = () => (proxy?.sent ?? []).filter((bytes) => bytes !== '')
  // All that it opens without email to send.
  for (const name of ['postern', 'postern workers', 'postern queue', 'postern wake-ups']) {
    const named = (bytes: string) => bytes.includes(`application_name\0${name}\0`)
    await expect.poll(() => connections().filter(named).length, { message: name }).toBeGreaterThan(0)
  }
  for (const setting of ['idle_in_transaction_session_timeout', 'tcp_keepalives_idle']) {
    await expect
      .poll(() => connections().filter((bytes) => !bytes.includes(setting)).length, { message: setting })
      .toBe(0)
  }
})

test('a session has the limits that docs/operating/deploy.md states', async () => {
  const { rows } = await sql`
      SELECT name, setting, unit FROM pg_settings
      WHERE name IN ('idle_in_transaction_session_timeout', 'tcp_keepalives_idle', 'tcp_keepalives_interval',
        'tcp_keepalives_count', 'default_transaction_isolation')
      ORDER BY name
    `.execute(newPool())
  expect(rows).toEqual([
    { name: 'default_transaction_isolation', setting: 'read committed', unit: null },
    { name: 'idle_in_transaction_session_timeout', setting: '60000', unit: 'ms' },
    { name: 'tcp_keepalives_count', setting: '3', unit: null },
    { name: 'tcp_keepalives_idle', setting: '30', unit: 's' },
    { name: 'tcp_keepalives_interval', setting: '10', unit: 's' },
  ])
})

test('a session that falls silent in a transaction lets others go on, and its pool makes another', async () => {
  const [silent, other] = [newPool(), newPool()]
  await other.insertInto('settings').values({ name: 'held', value: '' }).execute()
  const set = (value: string) => sql`UPDATE settings SET value = ${value} WHERE name = 'held'`
  const work = inTransaction(silent, async (trx) => {
    await sql`SET LOCAL idle_in_transaction_session_timeout = '50ms'`.execute(trx)
    await set('lost').execute(trx)
    // Waits for the lock until the session has been ended.
    await set('kept').execute(other)
    await set('late').execute(trx)
  })
  await expect(work).rejects.toThrow('connection')
  const { rows } = await sql`SELECT value FROM settings WHERE name = 'held'`.execute(silent)
  expect(rows).toEqual([{ value: 'kept' }])
})
