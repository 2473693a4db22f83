import { setImmediate as endOfTurn } from 'node:timers/promises'
import { sql } from 'kysely'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createRequestLogCounter } from '../../server/request-logs/metrics.ts'
import {
  type RequestLogOptions,
  type RequestLogRecorder,
  startRequestLogs,
} from '../../server/request-logs/recorder.ts'
import { type AnsweredByKey, bytesOf, rowOf } from '../../server/request-logs/row.ts'
import { DomainError, invalidRequest } from '../../server/shared/errors.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { patienceMs } from '../support/patience.ts'

let database: TestDatabase
let registry: Registry
let logged: string[]
let recorder: RequestLogRecorder | undefined
let now: Date

beforeEach(async () => {
  database = await createTestDatabase()
  registry = new Registry()
  logged = []
  now = new Date('2026-03-05T23:00:00Z')
})
afterEach(async () => {
  await recorder?.stop()
  recorder = undefined
  await database.drop()
})

/** By default it writes only what a test has it write: its first run, which has nothing to write, is over. */
async function start(options: Partial<RequestLogOptions> = {}): Promise<RequestLogRecorder> {
  recorder = startRequestLogs({
    db: database.db,
    clock: { now: () => now },
    logger: createLogger({ level: 'info', destination: { write: (line) => void logged.push(line) } }),
    counter: createRequestLogCounter(registry),
    intervalMs: 3_600_000,
    ...options,
  })
  await endOfTurn()
  return recorder
}

function request(of: Partial<AnsweredByKey> = {}): AnsweredByKey {
  return {
    id: newId('request', new Date()),
    accountId: 'acc_a',
    mode: 'live',
    keyId: exampleId('apiKey'),
    keyName: 'A key',
    operationId: 'sendEmail',
    method: 'POST',
    route: '/v1/emails',
    url: '/v1/emails',
    status: 202,
    durationMs: 1,
    ipAddress: '127.0.0.1',
    refusal: undefined,
    body: { subject: 'Hello' },
    ...of,
  }
}

/** A failed request of which as much is kept as of any. */
function largest(of: Partial<AnsweredByKey> = {}): AnsweredByKey {
  const address = `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.example.com`
  const email = {
    ...Object.fromEntries(['from', 'to', 'cc', 'bcc', 'replyTo'].map((name) => [name, Array(50).fill(address)])),
    attachments: Array(50).fill({ filename: 'x'.repeat(255), content: 'x'.repeat(1_000), contentType: 'x' }),
  }
  return request({
    operationId: 'sendEmailBatch',
    url: `/v1/emails?${`recipient=${'a'.repeat(60)}@example.com&`.repeat(100)}`,
    status: 400,
    refusal: invalidRequest(Array(50).fill({ path: `body${'.attachments'.repeat(7)}`, message: 'is required' })),
    body: { emails: Array(100).fill(email) },
    ...of,
  })
}

async function kept(): Promise<number> {
  const { rows } = await sql<{ count: number }>`SELECT count(*)::int AS count FROM request_logs`.execute(database.db)
  return rows[0]?.count ?? 0
}

async function counted(outcome: 'written' | 'dropped'): Promise<number> {
  const metric = await registry.getSingleMetric('postern_request_logs_total')?.get()
  return metric?.values.find(({ labels }) => labels.outcome === outcome)?.value ?? 0
}

test('requests are written in batches of 1,000, without being asked when there are 1,000', async () => {
  const { add } = await start()
  for (let count = 0; count < 1_000; count++) add(request())
  await expect.poll(kept, { timeout: patienceMs }).toBe(1_000)
})

test('requests are written after the interval', async () => {
  const { add } = await start({ intervalMs: 10 })
  add(request())
  await expect.poll(kept, { timeout: patienceMs }).toBe(1)
})

test('stopping writes what waits', async () => {
  const logs = await start()
  for (let count = 0; count < 2_500; count++) logs.add(request())
  await logs.stop()
  expect([await kept(), await counted('written'), await counted('dropped')]).toEqual([2_500, 2_500, 0])
})

describe('what is kept is bounded:', () => {
  test('a tenant that sends more than its share leaves room for others', async () => {
    const logs = await start({ limits: { waiting: 100, waitingOfScope: 60 } })
    for (let count = 0; count < 10_000; count++) logs.add(request())
    for (let count = 0; count < 10_000; count++) logs.add(request({ accountId: 'acc_b' }))
    expect(await counted('dropped')).toBe(19_900)
    await logs.write()
    expect(await kept()).toBe(100)
    logs.add(request())
    await logs.write()
    expect(await kept()).toBe(101)
  })

  test('the bytes that wait are bounded', async () => {
    const one = bytesOf(rowOf(largest()))
    const logs = await start({ limits: { bytes: 10 * one } })
    for (let count = 0; count < 1_000; count++) logs.add(largest())
    await logs.write()
    expect(await kept()).toBe(10)
    logs.add(largest())
    await logs.write()
    expect(await kept()).toBe(11)
  })

  test.each([401, 429])('few requests of each account with status %i are written at a time', async (status) => {
    const logs = await start({ limits: { refusedOfScope: 5 } })
    const refusal = new DomainError('rate_limit_exceeded', 'Too many.')
    for (let count = 0; count < 100; count++) logs.add(request({ status, refusal }))
    logs.add(request({ status, refusal, mode: 'test' }))
    logs.add(request())
    await logs.write()
    expect(await kept()).toBe(7)
  })

  test('nothing more of an account and mode is kept above the bytes of a day, until the next day', async () => {
    const one = bytesOf(rowOf(request()))
    const logs = await start({ limits: { bytesPerDay: 10 * one } })
    for (let round = 0; round < 20; round++) {
      logs.add(request())
      logs.add(request({ mode: 'test', accountId: round === 0 ? 'acc_a' : 'acc_b' }))
      await logs.write()
    }
    expect(await kept()).toBe(10 + 1 + 10)
    expect(await counted('dropped')).toBe(19)
    now = new Date('2026-03-06T00:00:00Z')
    logs.add(request({ accountId: 'acc_c' }))
    await logs.write()
    logs.add(request())
    await logs.write()
    expect(await kept()).toBe(21 + 2)
  })

  test.each([401, 429])('what is kept is bounded: requests with status %i do not use up the day', async (status) => {
    const limits = { bytesPerDay: 40 * bytesOf(rowOf(request())) }
    const logs = await start({ limits })
    const refused = { status, refusal: new DomainError('authentication_error', 'The API key was revoked.') }
    for (let round = 0; round < 20; round++) {
      logs.add(request(refused))
      await logs.write()
    }
    expect(await kept()).toBe(10)
    logs.add(request())
    logs.add(request({ ...refused, accountId: 'acc_b' }))
    await logs.write()
    expect(await kept()).toBe(12)
    now = new Date('2026-03-06T00:00:00Z')
    logs.add(request({ accountId: 'acc_b' }))
    await logs.write()
    logs.add(request(refused))
    await logs.write()
    expect(await kept()).toBe(14)
  })

  test('processes share the bytes of a day', async () => {
    const limits = { bytesPerDay: 10 * bytesOf(rowOf(request())) }
    const one = await start({ limits })
    const other = startRequestLogs({
      db: database.db,
      clock: { now: () => now },
      logger: createLogger({ level: 'silent', destination: { write: () => undefined } }),
      counter: { inc: () => undefined },
      intervalMs: 3_600_000,
      limits,
    })
    for (let round = 0; round < 20; round++) {
      one.add(request())
      await one.write()
      other.add(request())
      await other.write()
    }
    await other.stop()
    expect(await kept()).toBe(11)
  })

  test('rows take no more of the disk than is counted', async () => {
    const logs = await start({ limits: { bytes: 2 ** 30, waiting: 1e6, waitingOfScope: 1e6 } })
    const modes = ['test', 'live'] as const
    const all = Array.from({ length: 4_500 }, (_, index) => {
      const of = { keyName: 'ü'.repeat(20), accountId: exampleId('account'), mode: modes[index % 2] ?? 'live' }
      return request(index % 3 === 0 ? { ...of, status: 404, refusal: new DomainError('not_found', '') } : of)
    })
    for (const one of all) logs.add(one)
    await logs.write()
    expect(await kept()).toBe(4_500)
    const { rows } = await sql<{ bytes: string }>`
      SELECT pg_total_relation_size('request_logs') AS bytes`.execute(database.db)
    const expected = all.reduce((sum, one) => sum + bytesOf(rowOf(one)), 0)
    expect(Number(rows[0]?.bytes)).toBeLessThan(expected)
  })
})

describe('when the database fails', () => {
  async function rename(from: string, to: string): Promise<void> {
    await sql`ALTER TABLE ${sql.table(from)} RENAME TO ${sql.id(to)}`.execute(database.db)
  }

  test('requests wait, and are written once when it works again', async () => {
    const logs = await start()
    await rename('request_logs', 'lost')
    for (let count = 0; count < 1_500; count++) logs.add(request())
    await expect(logs.write()).rejects.toThrow('request_logs')
    await rename('lost', 'request_logs')
    await logs.write()
    expect([await kept(), await counted('written'), await counted('dropped')]).toEqual([1_500, 1_500, 0])
  })

  test('a batch that fails ten times is dropped, and those behind it are written', async () => {
    const logs = await start()
    await rename('request_logs', 'lost')
    for (let count = 0; count < 1_000; count++) logs.add(request())
    logs.add(request())
    await expect(logs.write()).rejects.toThrow('request_logs')
    while ((await counted('dropped')) === 0) await logs.write().catch(() => undefined)
    expect(await counted('dropped')).toBe(1_000)
    await rename('lost', 'request_logs')
    await logs.write()
    expect(await kept()).toBe(1)
  })

  test('stopping ends all the same, and says how many are missing', async () => {
    const logs = await start()
    await rename('request_logs', 'lost')
    for (let count = 0; count < 30; count++) logs.add(request())
    await logs.stop()
    expect(logged.map((line) => JSON.parse(line))).toContainEqual(expect.objectContaining({ dropped: 30 }))
  })
})
