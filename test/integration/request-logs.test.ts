import { generateKeyPairSync } from 'node:crypto'
import { sql } from 'kysely'
import type { SchemaObject } from 'openapi3-ts/oas31'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { type RequestLog, type RequestLogQuery, requestLogDays } from '../../contract/request-logs.ts'
import { insertLogs } from '../../server/request-logs/queries.ts'
import { deleteOldRequestLogs } from '../../server/request-logs/retention.ts'
import { firstIdAt, newId } from '../../server/shared/ids.ts'
import { keysOfOnePermission } from '../support/api-keys.ts'
import { type Answer, createTestClient } from '../support/client.ts'
import { createFixtures, pathOf } from '../support/fixtures.ts'
import { patienceMs } from '../support/patience.ts'
import { dereference, type Operation, operations } from '../support/published-spec.ts'
import { logRow } from '../support/request-logs.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * The request logs over the API: which requests are in them, who sees them, what of a request is never in them, and
 * what happens when they cannot be written.
 */

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
})
afterAll(() => service.stop())

async function list(query: Partial<RequestLogQuery> = {}, key = service.keys.live): Promise<RequestLog[]> {
  return (await service.client.as(key).succeed(contract.requestLogs.list, { query: { limit: 100, ...query } })).data
}

function idOf({ headers }: Answer): string {
  return headers['x-request-id'] ?? ''
}

/** Waits until the request is written, which is behind its answer. */
async function written(answer: Answer, { database } = service): Promise<void> {
  const find = () => database.db.selectFrom('request_logs').select('id').where('id', '=', idOf(answer)).execute()
  await expect.poll(find, { timeout: patienceMs }).toHaveLength(1)
}

async function logOf(answer: Answer, key = service.keys.live) {
  await written(answer)
  return service.client.as(key).succeed(contract.requestLogs.get, { params: { id: idOf(answer) } })
}

test('a request is in the logs with key, path, status, duration and address, and without its body where it succeeded', async () => {
  const answer = await service.client.send('POST', '/v1/webhooks', {
    json: { url: 'http://127.0.0.1:9/hooks', events: ['email.sent'] },
  })
  expect(await logOf(answer)).toEqual({
    id: idOf(answer),
    at: expect.stringMatching(/^20/),
    mode: 'live',
    method: 'POST',
    route: '/v1/webhooks',
    path: '/v1/webhooks',
    status: 201,
    durationMs: expect.any(Number),
    key: { id: expect.stringMatching(/^key_/), name: 'A key' },
    errorCode: null,
    ipAddress: '127.0.0.1',
    requestBody: null,
    error: null,
  })
})

test('a request is in the logs with the error and what may be kept of the body where it failed', async () => {
  const answer = await service.client.send('POST', '/v1/webhooks', {
    json: { url: 'https://example.com/hooks?token=hunter2', events: ['email.opened', 'hunter2'], hunter2: 1 },
  })
  expect(await logOf(answer)).toMatchObject({
    status: 400,
    errorCode: 'validation_error',
    requestBody: {
      url: 'https://example.com/…',
      events: ['email.opened', '[text, 7 characters]'],
      '…': '[1 other field]',
    },
    error: {
      code: 'validation_error',
      message: expect.stringContaining('`details` names each'),
      details: [
        { path: 'body.events[1]', message: null },
        { path: 'body.…', message: 'is not known here' },
      ],
    },
  })
})

test('a request is in the logs where a rule of the service refuses it, and where nothing is there', async () => {
  const unknown = exampleId('email')
  const missing = await service.client.send('GET', `/v1/emails/${unknown}`)
  expect(await logOf(missing)).toMatchObject({
    route: '/v1/emails/{id}',
    path: `/v1/emails/${unknown}`,
    errorCode: 'not_found',
  })
  const malformed = await service.client.send('GET', '/v1/emails/hunter2')
  expect(await logOf(malformed)).toMatchObject({ path: '/v1/emails/…', status: 404 })
})

test('a request is in the logs where the key is revoked, under the name of that key', async () => {
  const answer = await service.client.as(service.keys.revoked).send('GET', '/v1/events')
  expect(await logOf(answer)).toMatchObject({
    status: 401,
    errorCode: 'authentication_error',
    key: { name: 'A key' },
  })
})

test('a request is in the logs where the body is not JSON, or too large, without it', async () => {
  const headers = { 'content-type': 'application/json' }
  const broken = await service.client.send('POST', '/v1/audiences', { raw: '{"name": "hunter2', headers })
  expect(await logOf(broken)).toMatchObject({ errorCode: 'malformed_json', requestBody: null })
  const large = await service.client.send('POST', '/v1/audiences', { json: { name: 'x'.repeat(100_000) } })
  expect(await logOf(large)).toMatchObject({ errorCode: 'payload_too_large', requestBody: null })
})

test('a request without a key, with an unknown key, or to a path that is not there is not in the logs', async () => {
  const before = await list()
  const answers = [
    await service.client.as(null).send('GET', '/v1/events'),
    await service.client.as(`postern_live_${'a'.repeat(32)}`).send('GET', '/v1/events'),
    await service.client.send('GET', '/v1/hunter2'),
  ]
  await written(await service.client.send('GET', '/v1/event-types'))
  const ids = (await list()).map(({ id }) => id)
  expect(ids.length).toBeGreaterThan(before.length)
  for (const answer of answers) expect(ids).not.toContain(idOf(answer))
})

describe('the list', () => {
  const key = exampleId('apiKey')
  const other = newId('apiKey', new Date())
  const at = (minute: number) => firstIdAt('request', new Date(Date.UTC(2026, 2, 1, 9, minute)))
  const statuses = [200, 200, 404, 0, 400, 200, 500, 404]
  let rows: ReturnType<typeof logRow>[]

  beforeAll(async () => {
    const { accountId, database } = service
    rows = statuses.map((status, index) =>
      logRow({ account_id: accountId, mode: 'test', id: at(index), status, key_id: index % 2 === 0 ? key : other }),
    )
    await insertLogs(database.db, rows, { added: [], day: new Date() })
  })

  const range = { since: '2026-03-01T00:00:00Z', until: '2026-03-02T00:00:00Z' }

  /** The places of what is found in `rows`, the newest first. */
  async function found(query: Partial<RequestLogQuery>): Promise<number[]> {
    const logs = await list({ ...range, ...query }, service.keys.test)
    return logs.map(({ id }) => rows.findIndex((row) => row.id === id))
  }

  test.each<[string, Partial<RequestLogQuery>, number[]]>([
    ['all', {}, [7, 6, 5, 4, 3, 2, 1, 0]],
    ['those with a status', { status: '404' }, [7, 2]],
    ['those of a class', { status: '4xx' }, [7, 4, 2]],
    ['those that were aborted', { status: 'aborted' }, [3]],
    ['those of a key', { key }, [6, 4, 2, 0]],
    ['those that failed', { status: 'failed' }, [7, 6, 4, 3, 2]],
    ['those of a key and a class', { key, status: '4xx' }, [4, 2]],
    ['those of a key and a status', { key: other, status: '404' }, [7]],
    ['those of an unknown key', { key: newId('apiKey', new Date()) }, []],
    ['those since a time', { since: '2026-03-01T09:05:00Z' }, [7, 6, 5]],
    ['those until a time', { until: '2026-03-01T09:02:00Z' }, [1, 0]],
    ['those of a key in a range', { key, since: '2026-03-01T09:02:00Z', until: '2026-03-01T09:06:00Z' }, [4, 2]],
  ])('the list has %s', async (_, query, expected) => {
    expect(await found(query)).toEqual(expected)
  })

  test.each<[string, Partial<RequestLogQuery>]>([
    ['of all', {}],
    ['of a class', { status: '4xx' }],
    ['of a key', { key }],
    ['of failures of a key', { key, status: 'failed' }],
  ])('%s has every request once, page by page', async (_, query) => {
    const ids: string[] = []
    let cursor: string | null | undefined
    do {
      const page = await service.client.as(service.keys.test).succeed(contract.requestLogs.list, {
        query: { ...range, ...query, limit: 2, ...(cursor && { cursor }) },
      })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(ids.map((id) => rows.findIndex((row) => row.id === id))).toEqual(await found(query))
  })

  test.each([['200'], ['2xx'], ['600'], ['4x'], ['99'], ['hunter2']])(
    'the list refuses the status %s',
    async (status) => {
      const answer = await service.client.send('GET', `/v1/request-logs?status=${status}`)
      expect(answer.status).toBe(400)
    },
  )

  test("the list shows neither another account's requests nor those of the other mode", async () => {
    const [row] = rows
    expect(await list(range)).toEqual([])
    expect(await list(range, service.keys.other)).toEqual([])
    for (const secret of [service.keys.other, service.keys.live]) {
      const answer = await service.client.as(secret).send('GET', `/v1/request-logs/${row?.id}`)
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    }
  })

  test('the list needs a permission that reading does not include', async () => {
    for (const [permission, secret] of Object.entries(await keysOfOnePermission(service))) {
      const answer = await service.client.as(secret).send('GET', '/v1/request-logs')
      expect([permission, answer.status]).toEqual([permission, permission === 'request_logs:read' ? 200 : 401])
    }
    expect((await service.client.as(service.keys.read).send('GET', '/v1/request-logs')).status).toBe(401)
  })
})

test('requests are deleted after 7 days', async () => {
  const now = new Date('2026-05-01T12:00:00Z')
  const { accountId, database } = service
  const ages = [8, requestLogDays + 0.01, requestLogDays - 0.01, 1]
  const ids = ages.map((days) => firstIdAt('request', new Date(now.getTime() - days * 86_400_000)))
  const kept = async () => {
    const rows = await database.db.selectFrom('request_logs').select('id').where('id', 'in', ids).execute()
    return ids.filter((id) => rows.some((row) => row.id === id))
  }
  const rows = ids.map((id) => logRow({ account_id: accountId, id }))
  const added = [{ accountId, mode: 'live' as const, bytes: 1 }]
  await insertLogs(database.db, rows, { added, day: new Date('2026-04-20T00:00:00Z') })
  expect(await kept()).toHaveLength(4)
  await deleteOldRequestLogs(database.db, now)
  expect(await kept()).toEqual(ids.slice(2))
  const days = await sql<{ day: string }>`SELECT day::text FROM request_log_days`.execute(database.db)
  expect(days.rows.map(({ day }) => day)).not.toContain('2026-04-20')
})

test('nothing that is secret is kept, whatever is sent wherever', { timeout: 4 * patienceMs }, async () => {
  const { client, database, keys } = service
  const fixtures = createFixtures(service)
  const { privateKey } = generateKeyPairSync('ed25519')
  const { secret } = await client.succeed(contract.webhooks.create, {
    body: { url: 'http://127.0.0.1:9/hooks', events: ['email.sent'] },
  })
  const secrets = [
    'correct-horse-7',
    '493817',
    secret,
    keys.test,
    'whsec_c2VjcmV0LXNlY3JldA==',
    String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    'Your invoice of 12,000 euros',
    '<p>Dear Grace</p>',
    'postern_session=abcdefghijklmnop',
  ]
  let turn = 0
  const next = () => secrets[turn++ % secrets.length] ?? ''
  /** The same body with a secret in place of each text, and in a field that is not known. */
  const filled = (value: unknown): unknown => {
    if (typeof value === 'string') return next()
    if (Array.isArray(value)) return value.map(filled)
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(([name, inner]) => [name, filled(inner)])
    return { ...Object.fromEntries(entries), [next()]: next() }
  }
  const isWebhook = ({ template }: Operation) => template.startsWith('/v1/webhooks/{id}')

  async function attack(operation: Operation): Promise<void> {
    const names = [...operation.parameters.query.map(({ name }) => name), 'token', 'password']
    const query = names.map((name) => `${name}=${encodeURIComponent(next())}`).join('&')
    const body = filled(operation.body === null ? {} : exampleOf(operation))
    const params = Object.fromEntries(operation.parameters.path.map(({ name }) => [name, next()]))
    const headers = { 'x-token': next().split('\n').join(' ') }
    const json = operation.body === null ? {} : { json: body }
    await client.send(operation.method, `${pathOf(operation, params)}?${query}`, { headers, ...json })
    // As far as the body is looked at.
    const path = pathOf(operation, isWebhook(operation) ? { id: exampleId('webhook') } : {})
    await client.send(operation.method, path, { idempotencyKey: `key ${turn}`, ...json })
  }

  function exampleOf(operation: Operation): unknown {
    const { examples = [{}] } = dereference<SchemaObject>(operation.body?.schema ?? {})
    return examples[0]
  }

  for (const operation of operations) {
    for (const _ of [1, 2, 3]) await attack(operation)
  }
  // Requests that succeed, too.
  await client.as(keys.test).succeed(contract.emails.send, {
    body: { from: 'hello@example.com', to: fixtures.newEmail(), subject: secrets[6] ?? '', html: secrets[7] ?? '' },
  })
  await client.succeed(contract.apiKeys.create, { body: { name: 'Another', permissions: ['events:read'] } })
  await written(await client.send('GET', '/v1/event-types'))

  const { rows } = await sql<{ row: string }>`SELECT to_jsonb(l) AS row FROM request_logs l`.execute(database.db)
  const text = JSON.stringify(rows)
  expect(rows.length).toBeGreaterThan(200)
  for (const one of [...secrets, 'correct-horse', 'PRIVATE KEY', 'invoice', 'Dear Grace', 'abcdefghijklmnop']) {
    expect([one, text.includes(one) || text.includes(encodeURIComponent(one))]).toEqual([one, false])
  }
  for (const key of Object.values(keys)) expect(text).not.toContain(key.slice('postern_live_'.length))
})

test('REQUEST_LOGS=false keeps nothing, and the list is empty', async () => {
  await using off = await startTestService({ roles: { worker: false }, requestLogs: false })
  await off.client.send('GET', '/v1/events')
  await off.client.send('GET', '/v1/events/hunter2')
  const client = off.client
  expect((await client.succeed(contract.requestLogs.list, { query: {} })).data).toEqual([])
  await off.stop()
})

test('a write that fails or hangs neither fails nor holds up a request', async () => {
  await using faulty = await startTestService({ roles: { worker: false } })
  const { db } = faulty.database
  await sql`ALTER TABLE request_logs RENAME TO lost`.execute(db)
  for (let count = 0; count < 20; count++) {
    expect((await faulty.client.send('GET', '/v1/event-types')).status).toBe(200)
  }
  await expect
    .poll(() => faulty.logged.join(''), { timeout: patienceMs })
    .toContain('writing request logs failed; trying again')
  await sql`ALTER TABLE lost RENAME TO request_logs`.execute(db)
  await db.transaction().execute(async (trx) => {
    await sql`LOCK TABLE request_logs IN ACCESS EXCLUSIVE MODE`.execute(trx)
    const client = createTestClient({ url: faulty.url, key: faulty.keys.live })
    for (let count = 0; count < 20; count++) expect((await client.send('GET', '/v1/event-types')).status).toBe(200)
    await client.close()
  })
  await expect
    .poll(
      () => faulty.client.succeed(contract.requestLogs.list, { query: { limit: 100 } }).then(({ data }) => data.length),
      {
        timeout: patienceMs,
      },
    )
    .toBeGreaterThanOrEqual(40)
})
