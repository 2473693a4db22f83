import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { createKeyCache } from '../../server/api-keys/cache.ts'
import { newKey } from '../../server/api-keys/key-format.ts'
import type { CreatedKey, NewKey } from '../../server/api-keys/service.ts'
import { createAuthFailures } from '../../server/http/auth-failures.ts'
import { authenticate, authorize, requirePermission } from '../../server/http/authenticate.ts'
import { createEndpoint } from '../../server/http/idempotency.ts'
import type { Endpoint } from '../../server/http/route-handler.ts'
import { secretBox } from '../../server/secrets/secret-box.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type Api, startApi } from './gates.ts'

const clock = { at: Date.parse('2026-01-01T00:00:20Z'), now: () => new Date(clock.at) }
const { accounts, apiKeys } = createKeyServices(clock)
let database: TestDatabase
let endpoint: Endpoint
let accountId: string

beforeAll(async () => {
  database = await createTestDatabase()
  endpoint = createEndpoint({ db: database.db, clock, secretBox: secretBox(Buffer.alloc(32)) })
  accountId = (await accounts.create(database.db, { name: 'Acme', plan: 'pro' })).id
})
afterAll(() => database.drop())

function createKey(options: Partial<NewKey> = {}): Promise<CreatedKey> {
  return apiKeys.create(database.db, { accountId, mode: 'live', permissions: ['full_access'], name: 'x', ...options })
}

function bearer(key: string): { headers: [string, string][] } {
  return { headers: [['authorization', `Bearer ${key}`]] }
}

/** An API that counts the looks into the database. */
async function start({ perMinute = 1_000 } = {}) {
  const cache = createKeyCache({ clock })
  const looks: string[] = []
  const api: Api = await startApi({
    gates: [
      authenticate({
        db: database.db,
        cache,
        failures: createAuthFailures({ clock, perMinute }),
        clock,
        lastUses: { saw: () => undefined },
        apiKeys: {
          findBySecret(handle, secret) {
            looks.push(secret)
            return apiKeys.findBySecret(handle, secret)
          },
        },
      }),
      requirePermission,
    ],
    endpoint,
    work: async () => 1,
  })
  return { api, cache, looks, [Symbol.asyncDispose]: () => api[Symbol.asyncDispose]() }
}

test('a valid key opens its account', async () => {
  await using world = await start()
  const { key } = await createKey({ mode: 'test' })
  const answer = await world.api.send('GET', '/read', bearer(key))
  expect(answer).toMatchObject({ status: 200, body: { accountId } })
})

test.each([
  ['in small letters', 'bearer '],
  ['in capitals', 'BEARER '],
  ['with more spaces', 'Bearer   '],
])('a valid key is read behind the scheme %s', async (_, scheme) => {
  await using world = await start()
  const { key } = await createKey()
  const answer = await world.api.send('GET', '/read', { headers: [['authorization', scheme + key]] })
  expect(answer.status).toBe(200)
})

test('a valid key is looked up once in two seconds, also by requests at once', async () => {
  await using world = await start()
  const { key } = await createKey()
  const send = async () => (await world.api.send('GET', '/read', bearer(key))).status
  expect(await Promise.all([send(), send(), send()])).toEqual([200, 200, 200])
  expect(await send()).toBe(200)
  expect(world.looks).toEqual([key])
  clock.at += 2_000
  expect(await send()).toBe(200)
  expect(world.looks).toEqual([key, key])
})

test('a valid key ends at once where the revocation is told', async () => {
  await using world = await start()
  const { id, key } = await createKey()
  await world.api.send('GET', '/read', bearer(key))
  await apiKeys.revoke(database.db, id)
  world.cache.tellNotified(id)
  expect((await world.api.send('GET', '/read', bearer(key))).status).toBe(401)
})

test('a valid key ends at once where it is told that it was deleted, and is then unknown', async () => {
  await using world = await start()
  const { id, key } = await createKey()
  await world.api.send('GET', '/read', bearer(key))
  await apiKeys.delete(database.db, id)
  world.cache.tellNotified(id)
  const { status, body } = await world.api.send('GET', '/read', bearer(key))
  expect([status, body.error]).toMatchObject([401, { code: 'authentication_error' }])
})

test.each([
  ['the same key twice', (key: string) => key],
  ['another key', () => newKey('live')],
])('a valid key does not open anything beside a second header: %s', async (_, another) => {
  await using world = await start()
  const { key } = await createKey()
  const headers = [...bearer(key).headers, ...bearer(another(key)).headers]
  const joined: [string, string][] = [['authorization', `Bearer ${key}, Bearer ${another(key)}`]]
  for (const isKnown of [false, true]) {
    if (isKnown) expect((await world.api.send('GET', '/read', bearer(key))).status).toBe(200)
    const two = await world.api.send('GET', '/read', { headers })
    expect([two.status, two.body.error]).toMatchObject([
      401,
      { code: 'authentication_error', message: expect.stringContaining('more than one Authorization header') },
    ])
    const one = await world.api.send('GET', '/read', { headers: joined })
    expect([one.status, one.body.error]).toMatchObject([401, { message: expect.stringContaining('malformed') }])
  }
})

test('a valid key ends within two seconds where the revocation is not told', async () => {
  await using world = await start()
  const { id, key } = await createKey()
  await world.api.send('GET', '/read', bearer(key))
  await apiKeys.revoke(database.db, id)
  clock.at += 2_000
  expect((await world.api.send('GET', '/read', bearer(key))).status).toBe(401)
})

describe('no valid key', () => {
  const good = newKey('live')

  test.each([
    ['none', [], 'is missing'],
    ['an empty header', [['authorization', '']], 'header is malformed'],
    ['a key without scheme', [['authorization', good]], 'header is malformed'],
    ['another scheme', [['authorization', `Basic ${good}`]], 'header is malformed'],
    ['a scheme without key', [['authorization', 'Bearer ']], 'header is malformed'],
    ['two keys', [['authorization', `Bearer ${good} ${good}`]], 'header is malformed'],
    ['a key in quotes', [['authorization', `Bearer "${good}"`]], 'header is malformed'],
    ['a key cut off', [['authorization', `Bearer ${good.slice(0, -1)}`]], 'key is malformed'],
    ['a key of another service', [['authorization', `Bearer sk_live_${good.slice(-43)}`]], 'key is malformed'],
  ] satisfies [string, [string, string][], string][])(
    'a request with no valid key is answered 401 without a look into the database: %s',
    async (_, headers, said) => {
      await using world = await start()
      const { status, body } = await world.api.send('GET', '/read', { headers })
      expect(status).toBe(401)
      expect(body.error).toMatchObject({ code: 'authentication_error', message: expect.stringContaining(said) })
      expect(JSON.stringify(body)).not.toContain(good.slice(-43, -1))
      expect(world.looks).toEqual([])
    },
  )

  test('a request with an unknown, a deleted or a revoked key is answered 401, which says which', async () => {
    await using world = await start()
    const deleted = await createKey()
    await database.db.deleteFrom('api_keys').where('id', '=', deleted.id).execute()
    const revoked = await createKey()
    await apiKeys.revoke(database.db, revoked.id)
    const messages: (string | undefined)[] = []
    for (const key of [good, deleted.key, revoked.key]) {
      const { status, body } = await world.api.send('GET', '/read', bearer(key))
      expect({ status, code: body.error?.code }).toEqual({ status: 401, code: 'authentication_error' })
      messages.push(body.error?.message)
    }
    expect(messages[0]).toContain('not known')
    expect(messages[1]).toBe(messages[0])
    expect(messages[2]).toContain('was revoked')
  })
})

const metadata = { permission: 'webhooks:write', liveKeyOnly: false } as const

test.each([
  ['the permission itself', ['webhooks:write'], true],
  ['a set with it', ['full_access'], true],
  ['one of several', ['events:read', 'webhooks:write'], true],
  ['a set without it', ['read_access'], false],
  ['another permission', ['webhooks:read'], false],
  ['one of a later version', ['webhooks:*'], false],
  ['none', [], false],
])('what a key may do is decided by its grants: %s', (_, permissions, allowed) => {
  const attempt = () => authorize({ mode: 'live', permissions }, metadata)
  if (allowed) expect(attempt).not.toThrow()
  else expect(attempt).toThrow(/lacks the permission "webhooks:write"/)
})

test('what a key may do is asked on every route', async () => {
  await using world = await start()
  const { key } = await createKey({ permissions: ['read_access'] })
  expect((await world.api.send('GET', '/read', bearer(key))).status).toBe(200)
  const { status, body } = await world.api.send('POST', '/plain', bearer(key))
  expect({ status, code: body.error?.code }).toEqual({ status: 401, code: 'authentication_error' })
})

test('a test key may not do what needs a live one', async () => {
  await using world = await start()
  const [testKey, liveKey] = [await createKey({ mode: 'test' }), await createKey()]
  expect((await world.api.send('GET', '/live', bearer(liveKey.key))).status).toBe(200)
  const { status, body } = await world.api.send('GET', '/live', bearer(testKey.key))
  expect(status).toBe(401)
  expect(body.error).toMatchObject({ code: 'authentication_error', message: expect.stringContaining('live key') })
})

test('an address that fails too often is refused with 429 until the minute is over', async () => {
  clock.at = Date.parse('2026-01-01T00:10:20Z')
  await using world = await start({ perMinute: 3 })
  const fail = () => world.api.send('GET', '/read', bearer(newKey('live')))
  for (let failure = 0; failure < 3; failure++) expect((await fail()).status).toBe(401)
  const { status, body } = await fail()
  expect(status).toBe(429)
  expect(body.error).toMatchObject({ code: 'rate_limit_exceeded', retryAfterSeconds: 40 })
  clock.at += 40_000
  expect((await fail()).status).toBe(401)
})

test('an address that fails too often is refused beyond the limit also when it tries all at once', async () => {
  await using world = await start({ perMinute: 3 })
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => world.api.send('GET', '/read', bearer(newKey('live')))),
  )
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(3)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(9)
})

test('an address that fails too often still gets in with any valid key, for others may share the address', async () => {
  await using world = await start({ perMinute: 1 })
  const [used, unused] = [await createKey(), await createKey()]
  expect((await world.api.send('GET', '/read', bearer(used.key))).status).toBe(200)
  expect((await world.api.send('GET', '/read')).status).toBe(401)
  expect((await world.api.send('GET', '/read')).status).toBe(429)
  expect((await world.api.send('GET', '/read', bearer(used.key))).status).toBe(200)
  expect((await world.api.send('GET', '/read', bearer(unused.key))).status).toBe(200)
})

test('an address that fails too often does not fail by what a valid key may not do', async () => {
  await using world = await start({ perMinute: 1 })
  const { key } = await createKey({ permissions: ['events:read'] })
  for (let request = 0; request < 3; request++) {
    expect((await world.api.send('GET', '/read', bearer(key))).status).toBe(401)
  }
})

test('an id is not a key', async () => {
  await using world = await start()
  expect((await world.api.send('GET', '/read', bearer(exampleId('apiKey')))).status).toBe(401)
})
