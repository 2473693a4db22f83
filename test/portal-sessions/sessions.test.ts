import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import { maxPortalSessions } from '../../contract/portal-sessions.ts'
import { deleteEndedPortalSessions } from '../../server/portal-sessions/retention.ts'
import { hashOfToken, newToken } from '../../server/users/tokens.ts'
import { createKeyServices, keyThatMay } from '../support/api-keys.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { pageHeaders, signUp } from '../support/people.ts'
import { makePortalLink, openLink, openPortal } from '../support/portal.ts'
import { startTestService, type TestService } from '../support/service.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
let time: TestTime
let service: TestService

beforeAll(async () => {
  time = createTestTime()
  service = await startTestService({ roles: { worker: false }, time })
})
afterAll(() => service.stop())
// The number of requests without a session in a minute is limited.
beforeEach(() => time.advance(minuteMs))

const isOpen = async (customer: { send: Awaited<ReturnType<typeof openPortal>>['send'] }) =>
  (await customer.send('GET', '/v1/portal-session')).status === 200

test('the link of a portal session leads to a page of the service, with the code where browsers send it to no server', async () => {
  expect(await makePortalLink(service)).toMatch(new RegExp(`^${service.url}/portal/psn_[0-9a-z]{26}#code=[\\w-]{43}$`))
})

test('the link of a portal session opens once, also for two requests at the same time', async () => {
  const link = await makePortalLink(service)
  const answers = await Promise.all([openLink(service, link), openLink(service, link), openLink(service, link)])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 404, 404])
  expect((await openLink(service, link)).status).toBe(404)
})

test('the link of a portal session opens for 5 minutes', async () => {
  const [early, late] = [await makePortalLink(service), await makePortalLink(service)]
  await time.advance(5 * minuteMs - 1000)
  expect((await openLink(service, early)).status).toBe(201)
  await time.advance(1000)
  expect((await openLink(service, late)).status).toBe(404)
})

test('the link of a portal session opens no more once its session was ended', async () => {
  const link = await makePortalLink(service)
  const id = /psn_\w{26}/.exec(link)?.[0] ?? ''
  await service.client.succeed(contract.portalSessions.delete, { params: { id } })
  expect((await openLink(service, link)).status).toBe(404)
})

test('the link of a portal session and its token are stored as hashes alone', async () => {
  const link = await makePortalLink(service, { customer: 'hashed' })
  const unused = JSON.stringify(await service.database.db.selectFrom('portal_sessions').selectAll().execute())
  expect(unused).not.toContain(link.slice(-43))
  const { body } = await openLink(service, link)
  const rows = await service.database.db.selectFrom('portal_sessions').selectAll().execute()
  expect(JSON.stringify(rows)).not.toContain(String(Object(body).token).slice(-43))
})

test('a portal session says what it shows, and how', async () => {
  const theme = { accentColor: '#0F766E', colorScheme: 'dark' } as const
  const customer = await openPortal(service, { customer: 'Müller & Söhne', eventTypes: ['email.sent'], theme })
  expect((await customer.send('GET', '/v1/portal-session')).body).toEqual({
    id: customer.sessionId,
    mode: 'live',
    customer: 'Müller & Söhne',
    eventTypes: ['email.sent'],
    permissions: ['events:read', 'webhooks:read', 'webhooks:write'],
    theme,
    expiresAt: new Date(time.clock.now().getTime() + hourMs).toISOString(),
  })
})

test('a portal session ends after an hour without use, and lasts with it', async () => {
  const customer = await openPortal(service)
  for (let round = 0; round < 3; round += 1) {
    await time.advance(hourMs - minuteMs)
    expect(await isOpen(customer)).toBe(true)
  }
  await time.advance(hourMs)
  expect(await isOpen(customer)).toBe(false)
})

test('a portal session is not used by requests of a page that nobody touches', async () => {
  const customer = await openPortal(service)
  const headers = { 'x-postern-unattended': '1' }
  const statusOf = async () => (await customer.send('GET', '/v1/portal-session', { headers })).status
  await time.advance(hourMs - minuteMs)
  expect(await statusOf()).toBe(200)
  await time.advance(minuteMs)
  expect(await statusOf()).toBe(401)
})

test('a portal session ends after 24 hours, however it is used', async () => {
  const customer = await openPortal(service)
  for (let round = 0; round < 26; round += 1) {
    await time.advance(55 * minuteMs)
    expect(await isOpen(customer)).toBe(true)
  }
  await time.advance(10 * minuteMs)
  expect(await isOpen(customer)).toBe(false)
})

test('a portal session is listed until it ends, for its mode and by customer', async () => {
  const mine = await openPortal(service, { customer: 'listed' })
  const inTest = await openPortal(service, { customer: 'listed', key: service.keys.test })
  const idsOf = async (key: string) =>
    (await service.client.as(key).succeed(contract.portalSessions.list, { query: { customer: 'listed' } })).data.map(
      ({ id }) => id,
    )
  expect(await idsOf(service.keys.live)).toEqual([mine.sessionId])
  expect(await idsOf(service.keys.test)).toEqual([inTest.sessionId])
  expect(await idsOf(service.keys.other)).toEqual([])
  await time.advance(hourMs)
  expect(await idsOf(service.keys.live)).toEqual([])
})

test('a portal session is not ended by another account or the other mode', async () => {
  const customer = await openPortal(service)
  for (const key of [service.keys.other, service.keys.test]) {
    const answer = await service.client.send('DELETE', `/v1/portal-sessions/${customer.sessionId}`, { key })
    expect(answer.status).toBe(404)
  }
  expect(await isOpen(customer)).toBe(true)
})

test('a portal session is deleted once it has ended, and no other', async () => {
  const old = await openPortal(service, { customer: 'swept' })
  await time.advance(hourMs)
  const young = await openPortal(service, { customer: 'swept' })
  await deleteEndedPortalSessions({ db: service.database.db, clock: time.clock })
  const rows = await service.database.db.selectFrom('portal_sessions').select('id').execute()
  const ids = rows.map(({ id }) => id)
  expect(ids).toContain(young.sessionId)
  expect(ids).not.toContain(old.sessionId)
})

test('a portal session ends with its account', async () => {
  const { accounts, apiKeys } = createKeyServices(time.clock)
  const { db } = service.database
  const account = await accounts.create(db, { name: 'Short-lived', plan: 'scale' })
  const options = { accountId: account.id, mode: 'live', permissions: ['full_access'], name: 'A key' } as const
  const { key } = await apiKeys.create(db, options)
  const customer = await openPortal(service, { key })
  await db.deleteFrom('accounts').where('id', '=', account.id).execute()
  expect(await isOpen(customer)).toBe(false)
})

describe('may do no more than its maker', () => {
  async function newKey(options: object = {}): Promise<{ id: string; key: string }> {
    const json = { name: 'Portal', permissions: ['webhooks:read', 'webhooks:write'], ...options }
    const { body } = await service.client.send('POST', '/v1/api-keys', { json })
    return Object(body)
  }

  test('a key that may not read events makes sessions that do not', async () => {
    const { key } = await newKey()
    const customer = await openPortal(service, { key })
    expect(Object((await customer.send('GET', '/v1/portal-session')).body).permissions).toEqual([
      'webhooks:read',
      'webhooks:write',
    ])
    expect((await customer.send('GET', '/v1/event-types')).status).toBe(401)
    expect((await customer.send('GET', '/v1/webhooks')).status).toBe(200)
  })

  test('a key that may not read webhooks makes none', async () => {
    const answer = await service.client.send('POST', '/v1/portal-sessions', {
      key: await keyThatMay('webhooks:write', service),
      json: { customer: '42' },
    })
    expect([answer.status, Object(answer.body).error.message]).toEqual([401, expect.stringContaining('webhooks:read')])
  })

  const listed = async () =>
    (await service.client.succeed(contract.portalSessions.list, { query: { limit: 100 } })).data.map(({ id }) => id)

  test('the sessions of a key end when it is revoked, deleted or expires, and are no longer listed', async () => {
    const expiresAt = new Date(time.clock.now().getTime() + 10 * minuteMs).toISOString()
    const [revoked, deleted, expired] = [await newKey(), await newKey(), await newKey({ expiresAt })]
    const customers = await Promise.all([revoked, deleted, expired].map(({ key }) => openPortal(service, { key })))
    const ids = customers.map(({ sessionId }) => sessionId)
    expect(await listed()).toEqual(expect.arrayContaining(ids))
    const links = await Promise.all([revoked, deleted].map(({ key }) => makePortalLink(service, { key })))
    await service.client.succeed(contract.apiKeys.revoke, { params: { id: revoked.id }, body: {} })
    await service.client.succeed(contract.apiKeys.delete, { params: { id: deleted.id } })
    expect(await Promise.all(customers.map(isOpen))).toEqual([false, false, true])
    expect((await listed()).filter((id) => ids.includes(id))).toEqual(ids.slice(2))
    for (const link of links) expect((await openLink(service, link)).status).toBe(404)
    await time.advance(10 * minuteMs)
    expect(await Promise.all(customers.map(isOpen))).toEqual([false, false, false])
    expect((await listed()).filter((id) => ids.includes(id))).toEqual([])
  })

  test('the sessions of a user end with another role, and when they are removed, and are no longer listed', async () => {
    for (const change of ['demoted', 'removed']) {
      const owner = await signUp(service)
      const developer = await signUp(service, { role: 'developer' })
      const { body } = await developer.send('POST', '/v1/portal-sessions', { json: { customer: '42' } })
      const opened = await openLink(service, Object(body).url)
      const token = String(Object(opened.body).token)
      const status = async () => (await service.client.send('GET', '/v1/webhooks', { key: token })).status
      expect(await status()).toBe(200)
      expect(await listed()).toContain(Object(body).id)
      const path = `/v1/members/${developer.userId}`
      if (change === 'removed') await owner.send('DELETE', path)
      else await owner.send('PATCH', path, { json: { role: 'viewer' } })
      expect([change, await status()]).toEqual([change, 401])
      expect(await listed()).not.toContain(Object(body).id)
    }
  })
})

test('the number of portal sessions of a customer is bounded: the oldest ends', async () => {
  const first = await openPortal(service, { customer: 'many' })
  for (let more = 1; more < maxPortalSessions.customer; more += 1) await makePortalLink(service, { customer: 'many' })
  expect(await isOpen(first)).toBe(true)
  const other = await openPortal(service, { customer: 'few' })
  await makePortalLink(service, { customer: 'many' })
  expect([await isOpen(first), await isOpen(other)]).toEqual([false, true])
})

test('the number of portal sessions of an account is bounded: the oldest ends, and none of another account', async () => {
  const { db } = service.database
  const [first, theirs] = [
    await openPortal(service, { customer: 'first' }),
    await openPortal(service, { key: service.keys.other }),
  ]
  const row = await db
    .selectFrom('portal_sessions')
    .selectAll()
    .where('id', '=', first.sessionId)
    .executeTakeFirstOrThrow()
  const rows = Array.from({ length: maxPortalSessions.account - 1 }, (_, index) => ({
    ...row,
    id: `psn_7${String(index).padStart(25, '0')}`,
    customer: `customer ${index}`,
    token_hash: hashOfToken(newToken()),
  }))
  for (let at = 0; at < rows.length; at += 1_000)
    await db
      .insertInto('portal_sessions')
      .values(rows.slice(at, at + 1_000))
      .execute()
  await makePortalLink(service, { customer: 'one more' })
  expect([await isOpen(first), await isOpen(theirs)]).toEqual([false, true])
  await db.deleteFrom('portal_sessions').where('id', '>=', 'psn_7').execute()
})

test('a request of the portal with a cookie is of the session that it names, so that a browser can have several', async () => {
  const [ada, grace] = [
    await openPortal(service, { customer: 'ada' }),
    await openPortal(service, { customer: 'grace' }),
  ]
  const whose = async (sessionId: string) => {
    const headers = {
      ...pageHeaders(service.url),
      cookie: `${ada.cookie}; ${grace.cookie}`,
      'x-postern-portal': sessionId,
    }
    return Object((await service.client.send('GET', '/v1/portal-session', { key: null, headers })).body).customer
  }
  expect([await whose(ada.sessionId), await whose(grace.sessionId)]).toEqual(['ada', 'grace'])
  expect(await whose(exampleId('portalSession'))).toBeUndefined()
})

test('a request of the portal with the cookie of one session under the name of another is refused', async () => {
  const [ada, grace] = [await openPortal(service), await openPortal(service)]
  const cookie = `${grace.cookie.split('=')[0]}=${ada.token}`
  const headers = { ...pageHeaders(service.url), cookie, 'x-postern-portal': grace.sessionId }
  expect((await service.client.send('GET', '/v1/webhooks', { key: null, headers })).status).toBe(401)
})

test.each([
  ['without the header of its pages', 'GET', { 'x-postern-dashboard': '' }],
  ['from a page of another origin', 'DELETE', { origin: 'https://evil.example' }],
  ['from a frame without an origin', 'DELETE', { origin: 'null' }],
])('a request of the portal with a cookie and %s is refused', async (_, method, headers) => {
  const { cookie, sessionId } = await openPortal(service)
  const own = { ...pageHeaders(service.url), cookie, 'x-postern-portal': sessionId }
  const path = `/v1/webhooks/${exampleId('webhook')}`
  expect((await service.client.send(method, path, { key: null, headers: own })).status).toBe(404)
  const answer = await service.client.send(method, path, { key: null, headers: { ...own, ...headers } })
  expect([answer.status, Object(answer.body).error.code]).toEqual([403, 'forbidden_origin'])
})

test.each<[string, Record<string, string>, number]>([
  ['without Sec-Fetch-Site', {}, 403],
  ['from another site', { 'sec-fetch-site': 'cross-site' }, 403],
  ['from another host of the same site', { 'sec-fetch-site': 'same-site' }, 403],
  ['from the same origin', { 'sec-fetch-site': 'same-origin' }, 404],
])('a request of the portal that has no Origin and comes %s is answered as it should', async (_, more, status) => {
  const { cookie, sessionId } = await openPortal(service)
  const { origin, ...page } = pageHeaders(service.url)
  expect(origin).toBe(service.url)
  const headers = { ...page, cookie, 'x-postern-portal': sessionId, ...more }
  const path = `/v1/webhooks/${exampleId('webhook')}`
  expect((await service.client.send('DELETE', path, { key: null, headers })).status).toBe(status)
})

test('a request of the portal neither opens the dashboard, nor is a session of the dashboard one of the portal', async () => {
  const person = await signUp(service)
  const customer = await openPortal(service)
  const asUser = { ...person.headers(), cookie: `postern_session=${customer.token}` }
  expect((await service.client.send('GET', '/v1/session', { key: null, headers: asUser })).status).toBe(401)
  expect((await customer.send('GET', '/v1/session', { headers: person.headers() })).status).toBe(401)
  expect((await person.send('GET', '/v1/portal-session')).status).toBe(401)
  const headers = { 'x-postern-portal': customer.sessionId }
  expect((await person.send('GET', '/v1/portal-session', { headers })).status).toBe(401)
  expect((await service.client.send('GET', '/v1/portal-session')).status).toBe(401)
})

test('a request of the portal counts for its customer, and not for the account', async () => {
  const [ada, grace] = [
    await openPortal(service, { customer: 'ada' }),
    await openPortal(service, { customer: 'grace' }),
  ]
  const limited = await openPortal(service, { customer: 'ada' })
  await Promise.all(Array.from({ length: 300 }, () => ada.send('GET', '/v1/portal-session')))
  const answer = await limited.send('GET', '/v1/portal-session')
  expect([answer.status, answer.headers['x-ratelimit-limit']]).toEqual([429, '300'])
  expect((await grace.send('GET', '/v1/portal-session')).status).toBe(200)
  expect((await service.client.send('GET', '/v1/webhooks')).headers['x-ratelimit-limit']).toBe('1000000')
})
