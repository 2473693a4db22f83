import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { maxKeys } from '../../contract/api-keys.ts'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import type { Grant } from '../../contract/permissions.ts'
import type { NewKey } from '../../server/api-keys/service.ts'
import { createKeyServices, keyThatMay } from '../support/api-keys.ts'
import type { Answer, SendOptions } from '../support/client.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Keys over the API: what a key may make of others, when and from where it may be used.
 */

let time: TestTime
let service: TestService

beforeAll(async () => {
  time = createTestTime(new Date('2026-03-01T00:00:00Z'))
  service = await startTestService({ roles: { worker: false }, time, trustProxy: 1 })
})
afterAll(() => service.stop())

/** Makes a key past the API. */
async function given(key: Partial<NewKey> = {}) {
  const { apiKeys } = createKeyServices(time.clock)
  const defaults = { mode: 'live', permissions: ['full_access'], name: 'Given' } as const
  return apiKeys.create(service.database.db, { accountId: service.accountId, ...defaults, ...key })
}

function post(key: string, json: object, options: SendOptions = {}): Promise<Answer> {
  return service.client.send('POST', '/v1/api-keys', { key, json, ...options })
}

/** A request that any key with `events:read` may send, from an address as a proxy tells it. */
function use(key: string, from?: string): Promise<Answer> {
  const headers = from === undefined ? {} : { 'x-forwarded-for': from }
  return service.client.send('GET', '/v1/event-types', { key, headers })
}

function messageOf({ body }: Answer): string {
  return Object(body).error?.message ?? ''
}

test('a new key is shown once, works, and says who made it', async () => {
  const maker = await given()
  const json = { name: 'Web shop', permissions: ['sending_access', 'events:read', 'events:read'] }
  const answer = await post(maker.key, json, { headers: { 'x-forwarded-for': '203.0.113.9' } })
  expect(answer.status).toBe(201)
  const { key, ...shown } = Object(answer.body)
  expect(shown).toEqual({
    id: expect.stringMatching(/^key_/),
    name: 'Web shop',
    mode: 'live',
    permissions: ['sending_access', 'events:read'],
    lastFour: key.slice(-4),
    createdAt: time.clock.now().toISOString(),
    createdBy: { type: 'key', id: maker.id },
    lastUsedAt: null,
    lastUsedFrom: null,
    expiresAt: null,
    allowedAddresses: [],
    revokedAt: null,
  })
  const got = await service.client.send('GET', `/v1/api-keys/${shown.id}`)
  expect(got.body).toEqual(shown)
  expect(got.text).not.toContain(key)
  expect((await use(key)).status).toBe(200)
  expect((await service.client.send('GET', '/v1/webhooks', { key })).status).toBe(401)
  const [entry] = (await service.client.succeed(contract.auditLog.list, { query: { limit: 1 } })).data
  expect(entry).toMatchObject({
    at: time.clock.now().toISOString(),
    actor: { type: 'key', id: maker.id, name: 'Given' },
    action: 'api_key.created',
    target: { type: 'api_key', id: shown.id, name: 'Web shop' },
    ipAddress: '203.0.113.9',
    details: { mode: 'live', permissions: 'sending_access, events:read' },
  })
  expect(JSON.stringify(entry)).not.toContain(key.slice(-20))
})

test('a new key has the mode of its maker, and its maker cannot choose another', async () => {
  const test = await post(service.keys.test, { name: 'x', permissions: ['events:read'] })
  expect(Object(test.body)).toMatchObject({ mode: 'test', key: expect.stringMatching(/^postern_test_/) })
  const live = await post(service.keys.test, { name: 'x', permissions: ['events:read'], mode: 'live' })
  expect(live.status).toBe(400)
  const other = await post(service.keys.live, {
    name: 'x',
    permissions: ['events:read'],
    accountId: exampleId('account'),
  })
  expect(other.status).toBe(400)
})

test('a new key belongs to the account of its maker', async () => {
  const { body } = await post(service.keys.other, { name: 'Theirs', permissions: ['events:read'] })
  const { id } = Object(body)
  for (const [method, path] of [
    ['GET', `/v1/api-keys/${id}`],
    ['POST', `/v1/api-keys/${id}/revoke`],
    ['DELETE', `/v1/api-keys/${id}`],
  ] as const) {
    expect((await service.client.send(method, path)).status).toBe(404)
  }
  const { data } = await service.client.succeed(contract.apiKeys.list, { query: { limit: 100 } })
  expect(data.map((key) => key.id)).not.toContain(id)
  const theirs = await service.client.as(service.keys.other).succeed(contract.apiKeys.list, { query: {} })
  expect(theirs.data.map((key) => key.name)).toEqual(['Theirs', 'A key'])
})

test.each<[what: string, held: Grant[], wanted: Grant[], lacks: string]>([
  ['full access', ['api_keys:write'], ['full_access'], 'webhooks:write'],
  ['a permission its maker lacks', ['api_keys:write', 'events:read'], ['events:read', 'emails:send'], 'emails:send'],
  ['a set its maker has in part', ['api_keys:write', 'emails:send'], ['sending_access'], 'emails:read'],
  ['the audit log of a maker that reads', ['read_access', 'api_keys:write'], ['audit_log:read'], 'audit_log:read'],
])('a new key never gets %s', async (_, held, wanted, lacks) => {
  const maker = await given({ permissions: held })
  const answer = await post(maker.key, { name: 'More', permissions: wanted })
  expect(answer).toMatchObject({
    status: 422,
    body: { error: { code: 'rule_violation', details: [{ path: `body.permissions[${wanted.length - 1}]` }] } },
  })
  expect(messageOf(answer)).toContain(lacks)
  const names = await service.database.db.selectFrom('api_keys').select('name').where('name', '=', 'More').execute()
  expect(names).toEqual([])
})

test.each(['members:read', 'members:write', 'everything', '__proto__', 'full_access '])(
  'a new key never gets the permission %s, which keys do not have',
  async (permission) => {
    expect((await post(service.keys.live, { name: 'x', permissions: [permission] })).status).toBe(400)
  },
)

test('a new key needs api_keys:write, whatever else its maker may do', async () => {
  const others = await Promise.all(
    (['api_keys:read', 'webhooks:write'] as const).map((permission) => keyThatMay(permission, service)),
  )
  for (const key of [service.keys.read, ...others]) {
    const answer = await post(key, { name: 'x', permissions: ['events:read'] })
    expect(answer.status).toBe(401)
    expect(messageOf(answer)).toContain('api_keys:write')
  }
})

test.each<[string, object]>([
  ['no name', { name: '' }],
  ['a name of two lines', { name: 'a\nb' }],
  ['a name with U+0000', { name: 'a\u0000b' }],
  ['a name that is too long', { name: 'x'.repeat(201) }],
  ['no permissions', { permissions: [] }],
  ['more permissions than there are', { permissions: Array.from({ length: 1_000 }, () => 'events:read') }],
  ['a time that is none', { expiresAt: 'tomorrow' }],
  ['a time without its zone', { expiresAt: '2027-01-01T00:00:00' }],
  ['a date that is none', { expiresAt: '2027-02-30T00:00:00Z' }],
  ['one address instead of a list', { allowedAddresses: '203.0.113.7' }],
  ['a host name', { allowedAddresses: ['example.com'] }],
  ['an address with a script', { allowedAddresses: ['<script>'] }],
  ['too many addresses', { allowedAddresses: Array.from({ length: 21 }, (_, index) => `10.0.0.${index}`) }],
  ['a very long address', { allowedAddresses: ['1'.repeat(60_000)] }],
])('a new key with %s is refused', async (_, fields) => {
  const answer = await post(service.keys.live, { name: 'x', permissions: ['events:read'], ...fields })
  expect([answer.status, Object(answer.body).error.code]).toEqual([400, 'validation_error'])
})

test.each<[string, object, string]>([
  ['an expiry now', { expiresAt: '2026-03-01T00:00:00Z' }, 'body.expiresAt'],
  ['an address out of range', { allowedAddresses: ['10.0.0.1', '10.0.0.256'] }, 'body.allowedAddresses[1]'],
  ['a range with bits beyond its prefix', { allowedAddresses: ['10.0.0.1/8'] }, 'body.allowedAddresses[0]'],
])('a new key with %s breaks a rule', async (_, fields, path) => {
  const answer = await post(service.keys.live, { name: 'x', permissions: ['events:read'], ...fields })
  expect(answer).toMatchObject({ status: 422, body: { error: { details: [{ path }] } } })
})

test('a new key with markup in its name is kept as it is', async () => {
  const name = '<img src=x onerror=alert(1)> \u202e ‮ "\' 漢'
  const { body } = await post(service.keys.live, { name, permissions: ['events:read'] })
  expect(Object(body).name).toBe(name)
})

const json = { name: 'Repeated', permissions: ['events:read'] }

test('a repeated request with the Idempotency-Key of its maker gets the same key', async () => {
  const first = await post(service.keys.live, json, { idempotencyKey: 'once' })
  const again = await post(service.keys.live, json, { idempotencyKey: 'once' })
  expect(again.body).toEqual(first.body)
  expect(again.headers['idempotent-replayed']).toBe('true')
})

test('a repeated request with the Idempotency-Key of another caller does not get its key', async () => {
  const full = { name: 'Powerful', permissions: ['full_access'] }
  const { body } = await post(service.keys.live, full, { idempotencyKey: 'powerful' })
  const weak = await given({ permissions: ['api_keys:write'] })
  const stolen = await post(weak.key, full, { idempotencyKey: 'powerful' })
  expect([stolen.status, Object(stolen.body).error.code]).toEqual([409, 'idempotency_conflict'])
  expect(stolen.text).not.toContain(Object(body).key)
})

test('a key that expires stops at its time, also where the process remembers it', async () => {
  const at = time.clock.now().getTime()
  const json = { name: 'Short', permissions: ['full_access'], expiresAt: new Date(at + 1_500).toISOString() }
  const { key, id } = Object((await post(service.keys.live, json)).body)
  expect((await use(key)).status).toBe(200)
  await time.advance(1_499)
  expect((await use(key)).status).toBe(200)
  await time.advance(1)
  const refused = await use(key)
  expect([refused.status, messageOf(refused)]).toEqual([401, expect.stringContaining(json.expiresAt)])
  // And still, when it is read anew.
  await time.advance(60_000)
  expect((await use(key)).status).toBe(401)
  expect(await service.client.succeed(contract.apiKeys.get, { params: { id } })).toMatchObject({
    expiresAt: json.expiresAt,
    revokedAt: null,
  })
})

test('a key that expires makes no key that outlives it', async () => {
  const expiresAt = new Date(time.clock.now().getTime() + 3_600_000)
  const maker = await given({ limits: { expiresAt, allowedAddresses: [] } })
  const json = { name: 'Child', permissions: ['events:read'] }
  expect((await post(maker.key, { ...json, expiresAt: null })).status).toBe(422)
  expect((await post(maker.key, { ...json, expiresAt: '2030-01-01T00:00:00Z' })).status).toBe(422)
  expect(Object((await post(maker.key, json)).body).expiresAt).toBe(expiresAt.toISOString())
})

describe('a key for certain addresses', () => {
  const allowedAddresses = ['203.0.113.0/24', '2001:db8::/32', '::ffff:198.51.100.7']
  let key: string

  beforeAll(async () => {
    const answer = await post(service.keys.live, { name: 'Bound', permissions: ['full_access'], allowedAddresses })
    expect(Object(answer.body).allowedAddresses).toEqual(['203.0.113.0/24', '2001:db8::/32', '198.51.100.7'])
    key = Object(answer.body).key
  })

  test.each([
    '203.0.113.1',
    '::ffff:203.0.113.1',
    '::FFFF:cb00:7101',
    '2001:db8:1:2::3',
    '2001:0DB8:0000:0000:0000:0000:0000:0001',
    '198.51.100.7',
    // Some proxies add the port of the client.
    '203.0.113.1:51234',
    // The proxy adds the last one; what is before it, the client made up.
    '10.0.0.1, 203.0.113.1',
  ])('a key for certain addresses may be used from %s', async (from) => {
    expect((await use(key, from)).status).toBe(200)
  })

  test.each([
    '203.0.114.1',
    '2001:db9::1',
    '::203.0.113.1',
    '64:ff9b::203.0.113.1',
    '203.0.113.1, 10.0.0.1',
    'unknown',
    '203.0.114.1:443',
    '203.0.113.0/24',
    '0xcb007101',
    '3405803777',
  ])('a key for certain addresses may not be used from %s', async (from) => {
    // Twice: read anew, and remembered.
    for (const _ of [1, 2]) {
      const answer = await use(key, from)
      expect(answer.status).toBe(401)
      expect(messageOf(answer)).toContain('must not be used from this address')
    }
  })

  test('a key for certain addresses makes no key for others', async () => {
    const json = { name: 'Child', permissions: ['events:read'] }
    const headers = { 'x-forwarded-for': '203.0.113.1' }
    for (const wider of [[], ['0.0.0.0/0'], ['203.0.112.0/23'], ['203.0.113.1', '10.0.0.1']]) {
      expect((await post(key, { ...json, allowedAddresses: wider }, { headers })).status).toBe(422)
    }
    const child = await post(key, json, { headers })
    expect(Object(child.body).allowedAddresses).toEqual(['203.0.113.0/24', '2001:db8::/32', '198.51.100.7'])
    const narrower = await post(key, { ...json, allowedAddresses: ['203.0.113.128/25'] }, { headers })
    expect(narrower.status).toBe(201)
  })

  test('a key for certain addresses does not believe X-Forwarded-For where no proxy is trusted', async () => {
    await using direct = await startTestService({ beside: service, roles: { worker: false }, time })
    const local = Object(
      (await post(service.keys.live, { name: 'L', permissions: ['full_access'], allowedAddresses: ['127.0.0.1'] }))
        .body,
    )
    const send = (secret: string) =>
      direct.client.send('GET', '/v1/event-types', { key: secret, headers: { 'x-forwarded-for': '203.0.113.1' } })
    expect((await send(key)).status).toBe(401)
    expect((await send(local.key)).status).toBe(200)
  })
})

test('ending a key is done when the request that revokes it is answered', async () => {
  const { id, key } = await given()
  expect((await use(key)).status).toBe(200)
  const revoked = await service.client.succeed(contract.apiKeys.revoke, { params: { id }, body: {} })
  expect(revoked.revokedAt).toBe(time.clock.now().toISOString())
  expect((await use(key)).status).toBe(401)
  await time.advance(1_000)
  expect(await service.client.succeed(contract.apiKeys.revoke, { params: { id }, body: {} })).toEqual(revoked)
})

test('ending a key is done when the request that deletes it is answered', async () => {
  const { id, key } = await given()
  expect((await use(key)).status).toBe(200)
  await service.client.succeed(contract.apiKeys.delete, { params: { id } })
  expect((await use(key)).status).toBe(401)
  expect((await service.client.send('DELETE', `/v1/api-keys/${id}`)).status).toBe(404)
})

test('ending a key reaches other processes', async () => {
  await using other = await startTestService({ beside: service, roles: { worker: false }, time })
  // The other process forgets all keys when it begins to listen. So the first may end by that, the second cannot.
  for (const { id, key } of [await given(), await given()]) {
    const there = async () => (await other.client.send('GET', '/v1/event-types', { key })).status
    expect(await there()).toBe(200)
    await service.client.succeed(contract.apiKeys.revoke, { params: { id }, body: {} })
    // Time stands still: only a message of the database ends it there.
    await expect.poll(there).toBe(401)
  }
})

test('ending a key can be done by the key itself', async () => {
  const { id, key } = await given({ permissions: ['api_keys:write'] })
  expect((await service.client.send('POST', `/v1/api-keys/${id}/revoke`, { key, json: {} })).status).toBe(200)
  expect((await use(key)).status).toBe(401)
})

test('the list has pages, newest first', async () => {
  const made = [await given(), await given(), await given()].map(({ id }) => id)
  const first = await service.client.succeed(contract.apiKeys.list, { query: { limit: 2 } })
  expect(first.data.map(({ id }) => id)).toEqual([made[2], made[1]])
  const query = { limit: 1, cursor: first.nextCursor ?? '' }
  const next = await service.client.succeed(contract.apiKeys.list, { query })
  expect(next.data.map(({ id }) => id)).toEqual([made[0]])
  expect(JSON.stringify(first)).not.toMatch(/postern_|hash/)
})

test('an account has a number of keys of each mode at most, however many are made at once', async () => {
  const { db } = service.database
  const { accounts, apiKeys } = createKeyServices(time.clock)
  const { id: accountId } = await accounts.create(db, { name: 'Many', plan: 'scale' })
  const make = (mode: 'test' | 'live') =>
    apiKeys.create(db, { accountId, mode, permissions: ['full_access'], name: 'A key' })
  const [{ key }] = [await make('live'), await make('test')]
  for (let count = 1; count < maxKeys - 1; count++) await make('live')
  for (let count = 1; count < maxKeys; count++) await make('test')
  const json = { name: 'x', permissions: ['events:read'] }
  const answers = await Promise.all([post(key, json), post(key, json), post(key, json)])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409])
  const refused = answers.find(({ status }) => status === 409)
  expect(Object(refused?.body).error).toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('100 API keys of live'),
  })
})

test('a use of a key stands in the list when the service has ended, with the address a proxy told', async () => {
  const { id, key } = await given()
  const other = await startTestService({ beside: service, roles: { worker: false }, time, trustProxy: 1 })
  try {
    const headers = { 'x-forwarded-for': '::ffff:203.0.113.77' }
    await other.client.send('GET', '/v1/event-types', { key, headers })
  } finally {
    await other.stop()
  }
  expect(await service.client.succeed(contract.apiKeys.get, { params: { id } })).toMatchObject({
    lastUsedAt: time.clock.now().toISOString(),
    lastUsedFrom: '203.0.113.77',
  })
})
