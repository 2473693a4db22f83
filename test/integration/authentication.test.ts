import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { permissionSets } from '../../contract/permissions.ts'
import { createKeyServices, type KeysOfOnePermission, keysOfOnePermission } from '../support/api-keys.ts'
import { createTestTime } from '../support/clock.ts'
import { keyOperations } from '../support/published-spec.ts'
import { startTestService, type TestKeys, type TestService } from '../support/service.ts'

let service: TestService
let keys: TestKeys
let only: KeysOfOnePermission

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  keys = service.keys
  only = await keysOfOnePermission(service)
})
afterAll(() => service.stop())

/** Lists the webhooks with this header. */
async function list(authorization: string | null) {
  const headers: Record<string, string> = authorization === null ? {} : { authorization }
  const answer = await service.client.send('GET', '/v1/webhooks', { key: null, headers })
  return { ...answer, error: Object(answer.body).error }
}

test.each<[string, () => string | null, RegExp]>([
  ['no key', () => null, /missing/],
  ['an empty header', () => '', /malformed/],
  ['another scheme', () => `Basic ${Buffer.from(`${keys.live}:`).toString('base64')}`, /malformed/],
  ['a key without a scheme', () => keys.live, /malformed/],
  ['a scheme without a key', () => 'Bearer ', /malformed/],
  ['two keys', () => `Bearer ${keys.live} ${keys.test}`, /malformed/],
  ['a key with its end cut off', () => `Bearer ${keys.live.slice(0, -1)}`, /malformed/],
  ['a key in capitals', () => `Bearer ${keys.live.toUpperCase()}`, /malformed/],
  ['a key that was never made', () => `Bearer ${keys.live.slice(0, -4)}AAAA`, /not known/],
  ['a live key with the prefix of a test key', () => `Bearer ${keys.live.replace('live', 'test')}`, /not known/],
  ['a revoked key', () => `Bearer ${keys.revoked}`, /revoked/],
  ['a key that may do something else', () => `Bearer ${only['emails:send']}`, /permission "webhooks:read"/],
])('a request is refused with 401 and a sentence that says why: %s', async (_, authorization, message) => {
  const { status, headers, error } = await list(authorization())
  expect(status).toBe(401)
  expect(headers['www-authenticate']).toMatch(/^Bearer/)
  expect(error).toMatchObject({ code: 'authentication_error', message: expect.stringMatching(message) })
  expect(error.message).not.toContain(keys.live.slice(-8))
})

test('a key that was deleted is refused with 401 and a sentence that says why', async () => {
  const { db } = service.database
  const { id, key } = await createKeyServices().apiKeys.create(db, {
    accountId: service.accountId,
    mode: 'live',
    permissions: ['full_access'],
    name: 'To be deleted',
  })
  await db.deleteFrom('api_keys').where('id', '=', id).execute()
  const { status, error } = await list(`Bearer ${key}`)
  expect(status).toBe(401)
  expect(error.message).toMatch(/not known/)
})

test('a key that has just been used and is revoked then is refused with 401 and a sentence that says why', async () => {
  // Time stands still: what the process remembers of the key does not lapse.
  await using service = await startTestService({ roles: { worker: false }, time: createTestTime() })
  const { db } = service.database
  const statusNow = async () =>
    (await service.client.send('GET', '/v1/webhooks', { key: null, headers: { authorization: `Bearer ${key}` } }))
      .status
  const { apiKeys } = createKeyServices()
  const permissions = ['full_access'] as const
  const { id, key } = await apiKeys.create(db, {
    accountId: service.accountId,
    mode: 'live',
    permissions,
    name: 'Short',
  })
  expect(await statusNow()).toBe(200)
  await apiKeys.revoke(db, id)
  // The process is told by a message of the database, which comes behind the commit.
  await expect.poll(statusNow).toBe(401)
})

test.each<[string, () => string]>([
  ['a live key', () => `Bearer ${keys.live}`],
  ['a test key', () => `Bearer ${keys.test}`],
  ['the scheme in other letter case', () => `bearer ${keys.live}`],
  ['a key that may read', () => `Bearer ${keys.read}`],
  ['a key that may do just this', () => `Bearer ${only['webhooks:read']}`],
])('a key opens the account: %s', async (_, authorization) => {
  expect((await list(authorization())).status).toBe(200)
})

test.each(keyOperations.map((operation) => [operation.id, operation] as const))(
  '%s can be called with its own permission, and with read access only where that has it',
  async (_, { method, template, permission }) => {
    const path = template.replaceAll(/\{(\w+)\}/g, 'x')
    const own = await service.client.send(method, path, { key: only[permission as keyof KeysOfOnePermission] })
    expect(own.status).not.toBe(401)
    const reading = await service.client.send(method, path, { key: keys.read })
    const mayRead = permissionSets.read_access.some((held) => held === permission)
    expect(reading.status === 401).toBe(!mayRead)
  },
)

test('a test of a campaign that shows what is kept of a person needs contacts:read too', async () => {
  const path = `/v1/campaigns/${exampleId('campaign')}/test`
  const to = ['ada@example.org']
  const send = (key: string, body: object) => service.client.send('POST', path, { key, json: body })
  const person = { to, subscriberId: exampleId('subscriber') }
  const refused = await send(only['campaigns:send'], person)
  expect(refused.status).toBe(401)
  expect(Object(refused.body).error.message).toMatch(/lacks the permission "contacts:read"/)
  expect((await send(only['campaigns:send'], { to })).status).toBe(404)
  expect((await send(keys.live, person)).status).toBe(404)
})

test('what the service keeps and logs of a key is not the key', async () => {
  const { rows } = await service.database.db
    .selectFrom('api_keys')
    .selectAll()
    .execute()
    .then((found) => ({ rows: found }))
  expect(rows.length).toBeGreaterThan(5)
  for (const key of [keys.live, keys.test, keys.revoked]) {
    expect(JSON.stringify(rows)).not.toContain(key)
    expect(service.logged.join('')).not.toContain(key)
  }
})

test('too many failures from one address are refused with 429, valid keys are not', async () => {
  await using strict = await startTestService({
    roles: { worker: false },
    // Time stands still, so that the minute does not end in between.
    time: createTestTime(),
    authFailuresPerMinute: 3,
  })
  const statuses: number[] = []
  await strict.client.send('GET', '/v1/webhooks')
  for (let failure = 0; failure < 5; failure++) {
    statuses.push((await strict.client.send('GET', '/v1/webhooks', { key: 'wrong' })).status)
  }
  expect(statuses).toEqual([401, 401, 401, 429, 429])
  expect((await strict.client.send('GET', '/v1/webhooks')).status).toBe(200)
})
