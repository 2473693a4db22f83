import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sessionDays } from '../../contract/sessions.ts'
import { newId } from '../../server/shared/ids.ts'
import { deleteEndedSessions } from '../../server/users/sessions.ts'
import { hashOfToken, newToken } from '../../server/users/tokens.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { goodPassword, invite, type Person, pageHeaders, personOf, signIn, signUp, tokenIn } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

const dayMs = 24 * 3_600_000
let service: TestService
let time: TestTime

beforeAll(async () => {
  time = createTestTime()
  service = await startTestService({ roles: { worker: false }, time })
})
afterAll(() => service.stop())
// Requests without a session are limited to so many a minute.
beforeEach(() => time.advance(60_000))

async function signInAgain(person: Person): Promise<Person> {
  return personOf(service, { email: person.email, answer: await signIn(service, { email: person.email }) })
}

test('a session says who is signed in, and where with which permissions', async () => {
  const person = await signUp(service, { role: 'viewer' })
  const { status, body } = await person.send('GET', '/v1/session')
  expect(status).toBe(200)
  expect(body).toMatchObject({
    user: { id: person.userId, email: person.email, hasTotp: false, isOperator: false },
    accounts: [{ id: service.accountId, role: 'viewer' }],
  })
  expect(Object(body).accounts[0].permissions).not.toContain('api_keys:read')
})

/** Inserts sessions of a user, as signing in does. Returns their ids. */
async function insertSessions({ userId }: Person, given: readonly { usedAt?: Date; expiresAt?: Date }[]) {
  const at = time.clock.now()
  const later = new Date(at.getTime() + dayMs)
  const rows = given.map(({ usedAt = at, expiresAt = later }) => ({
    id: newId('session', at),
    user_id: userId,
    token_hash: hashOfToken(newToken()),
    created_at: at,
    last_used_at: usedAt,
    expires_at: expiresAt,
    ip_address: '203.0.113.7',
    user_agent: '',
  }))
  await service.database.db.insertInto('user_sessions').values(rows).execute()
  return rows.map(({ id }) => id)
}

async function sessionsOf({ userId }: Person): Promise<string[]> {
  const { db } = service.database
  const rows = await db.selectFrom('user_sessions').select('id').where('user_id', '=', userId).orderBy('id').execute()
  return rows.map(({ id }) => id)
}

test('a user has 100 sessions at most: the oldest one ends when they sign in once more', async () => {
  const person = await signUp(service)
  const others = await insertSessions(person, Array(99).fill({}))
  expect((await person.send('GET', '/v1/session')).status).toBe(200)
  const again = await signInAgain(person)
  expect((await sessionsOf(person)).slice(0, 99)).toEqual(others)
  expect(await sessionsOf(person)).toHaveLength(100)
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
  expect((await again.send('GET', '/v1/session')).status).toBe(200)
})

test('sessions and links that have ended are deleted, and others are not', async () => {
  const person = await signUp(service)
  const [own = ''] = await sessionsOf(person)
  const [now, longAgo] = [time.clock.now(), new Date(time.clock.now().getTime() - sessionDays.idle * dayMs)]
  const [alive = ''] = await insertSessions(person, [{ usedAt: new Date(longAgo.getTime() + 1_000) }])
  await insertSessions(person, [{ expiresAt: now }, { usedAt: longAgo }])
  const { db } = service.database
  const links = () => db.selectFrom('user_links').select('email').where('email', 'like', '%@ended.example').execute()
  for (const name of ['stays', 'ends']) await invite(service, { email: `${name}@ended.example` })
  await db.updateTable('user_links').set({ expires_at: now }).where('email', '=', 'ends@ended.example').execute()
  await deleteEndedSessions({ db, clock: time.clock })
  expect(await sessionsOf(person)).toEqual([own, alive])
  expect(await links()).toEqual([{ email: 'stays@ended.example' }])
})

test('a session works on the routes that take keys, in the account and mode that it names', async () => {
  const person = await signUp(service, { role: 'developer' })
  const json = { url: 'https://example.com/hooks', events: ['email.sent'] }
  const made = await person.send('POST', '/v1/webhooks', { json, headers: { 'x-postern-mode': 'test' } })
  expect(made.status).toBe(201)
  const path = `/v1/webhooks/${Object(made.body).id}`
  expect((await person.send('GET', path, { headers: { 'x-postern-mode': 'test' } })).status).toBe(200)
  expect((await person.send('GET', path)).status).toBe(404)
  expect((await service.client.send('GET', path, { key: service.keys.test })).status).toBe(200)
})

test.each([
  ['no account', { 'x-postern-account': '' }, 404],
  ['an account that is none', { 'x-postern-account': 'acc_1' }, 404],
  ['another mode', { 'x-postern-mode': 'both' }, 400],
])('a session is refused with %s', async (_, headers, status) => {
  const person = await signUp(service)
  expect((await person.send('GET', '/v1/members', { headers })).status).toBe(status)
})

test('a session ends when it is not used for 7 days', async () => {
  const person = await signUp(service)
  await time.advance(7 * dayMs - 60_000)
  expect((await person.send('GET', '/v1/session')).status).toBe(200)
  await time.advance(7 * dayMs - 60_000)
  expect((await person.send('GET', '/v1/session')).status).toBe(200)
  await time.advance(7 * dayMs)
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
})

test('a session is not used by requests of a page that nobody touches, which it answers while it lasts', async () => {
  const person = await signUp(service)
  const headers = { 'x-postern-unattended': '1' }
  for (let day = 1; day < 7; day += 1) {
    await time.advance(dayMs)
    expect((await person.send('GET', '/v1/webhooks', { headers })).status).toBe(200)
  }
  await time.advance(dayMs)
  expect((await person.send('GET', '/v1/webhooks', { headers })).status).toBe(401)
})

test('a session is used by a request that changes something, whatever it says of its page', async () => {
  const person = await signUp(service)
  await time.advance(6 * dayMs)
  const headers = { 'x-postern-unattended': '1' }
  expect((await person.send('PATCH', '/v1/user', { headers, json: { name: 'Ada' } })).status).toBe(200)
  await time.advance(6 * dayMs)
  expect((await person.send('GET', '/v1/session')).status).toBe(200)
})

test('a session ends after 30 days however often it is used', async () => {
  const person = await signUp(service)
  for (let day = 0; day < 29; day += 1) {
    await time.advance(dayMs)
    expect((await person.send('GET', '/v1/session')).status).toBe(200)
  }
  await time.advance(dayMs)
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
})

test('a session ends at once when its user signs out, and the cookie goes', async () => {
  const person = await signUp(service)
  const answer = await person.send('DELETE', '/v1/session')
  expect(answer.status).toBe(204)
  expect(answer.headers['set-cookie']).toMatch(/^postern_session=; .*Max-Age=0/)
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
})

test('a session is listed for its user alone, and another one can end it', async () => {
  const [first, stranger] = [await signUp(service), await signUp(service)]
  const second = await signInAgain(first)
  const { body } = await second.send('GET', '/v1/sessions')
  const { data } = Object(body)
  expect(data).toHaveLength(2)
  expect(data.map(({ isCurrent }: { isCurrent: boolean }) => isCurrent)).toEqual([true, false])
  const path = `/v1/sessions/${data[1].id}`
  expect((await stranger.send('DELETE', path)).status).toBe(404)
  expect((await first.send('GET', '/v1/session')).status).toBe(200)
  expect((await second.send('DELETE', path)).status).toBe(204)
  expect((await first.send('GET', '/v1/session')).status).toBe(401)
})

test('a session ends all others of its user, and none of anybody else', async () => {
  const [first, stranger] = [await signUp(service), await signUp(service)]
  const second = await signInAgain(first)
  expect((await second.send('DELETE', '/v1/sessions')).status).toBe(204)
  const statuses = [first, second, stranger].map(async (one) => (await one.send('GET', '/v1/session')).status)
  expect(await Promise.all(statuses)).toEqual([401, 200, 200])
})

test('a session has no access any more from the request after its user was removed', async () => {
  const [owner, person] = [await signUp(service), await signUp(service, { role: 'developer' })]
  expect((await person.send('GET', '/v1/webhooks')).status).toBe(200)
  expect((await owner.send('DELETE', `/v1/members/${person.userId}`)).status).toBe(204)
  expect((await person.send('GET', '/v1/webhooks')).status).toBe(404)
})

const changed = 'another long password'

test('a new password ends all other sessions and gives this one a new token', async () => {
  const first = await signUp(service)
  const second = await signInAgain(first)
  const json = { password: { current: goodPassword, new: changed } }
  const answer = await second.send('PATCH', '/v1/user', { json })
  expect(answer.status).toBe(200)
  const renewed = { cookie: `postern_session=${tokenIn(answer)}` }
  const statuses = [
    await first.send('GET', '/v1/session'),
    await second.send('GET', '/v1/session'),
    await second.send('GET', '/v1/session', { headers: renewed }),
  ].map(({ status }) => status)
  expect(statuses).toEqual([401, 401, 200])
  expect((await signIn(service, { email: first.email })).status).toBe(401)
  expect((await signIn(service, { email: first.email, password: changed })).status).toBe(201)
})

test.each([
  ['the wrong current one', { current: 'not the password', new: changed }, 401],
  ['one that is too short', { current: goodPassword, new: 'short' }, 400],
  ['the email address', { current: goodPassword, new: 'EMAIL' }, 422],
])('a new password is refused with %s', async (_, password, status) => {
  const person = await signUp(service)
  const json = { password: { ...password, new: password.new === 'EMAIL' ? person.email : password.new } }
  expect((await person.send('PATCH', '/v1/user', { json })).status).toBe(status)
  expect((await person.send('GET', '/v1/session')).status).toBe(200)
  expect((await signIn(service, { email: person.email })).status).toBe(201)
})

describe('attacks on sessions', () => {
  test.each([
    ['no header of the dashboard', { 'x-postern-dashboard': '' }],
    ['another origin', { origin: 'https://evil.example' }],
    ['an opaque origin', { origin: 'null' }],
    ['an origin that begins like ours', { origin: 'http://127.0.0.1.evil.example' }],
  ])('a request that changes something is refused with %s', async (_, headers) => {
    const person = await signUp(service)
    for (const [method, path] of [
      ['POST', '/v1/audiences'],
      ['DELETE', '/v1/session'],
    ] as const) {
      const json = method === 'POST' ? { json: { name: 'List' } } : {}
      const { status, body } = await person.send(method, path, { ...json, headers })
      expect([status, Object(body).error?.code]).toEqual([403, 'forbidden_origin'])
    }
    expect((await person.send('GET', '/v1/session')).status).toBe(200)
  })

  test.each<[string, Record<string, string>, number]>([
    ['without Sec-Fetch-Site', {}, 403],
    ['from another site', { 'sec-fetch-site': 'cross-site' }, 403],
    ['from another host of the same site', { 'sec-fetch-site': 'same-site' }, 403],
    ['from no page', { 'sec-fetch-site': 'none' }, 403],
    ['from the same origin', { 'sec-fetch-site': 'same-origin' }, 201],
  ])(
    'a request that changes something, has no Origin and comes %s is answered as it should',
    async (_, more, status) => {
      const { origin, ...headers } = (await signUp(service)).headers()
      expect(origin).toBe(service.url)
      const sent = { key: null, headers: { ...headers, ...more }, json: { name: 'List' } }
      expect((await service.client.send('POST', '/v1/audiences', sent)).status).toBe(status)
    },
  )

  test('a request that reads is refused without the header of the dashboard', async () => {
    const person = await signUp(service)
    const { status } = await person.send('GET', '/v1/webhooks', { headers: { 'x-postern-dashboard': '0' } })
    expect(status).toBe(403)
  })

  test('signing in and accepting a link are refused from another page, which could sign a person in as another', async () => {
    const person = await signUp(service)
    const headers = { ...pageHeaders(service.url), origin: 'https://evil.example' }
    const json = { email: person.email, password: goodPassword }
    const answer = await service.client.send('POST', '/v1/session', { key: null, headers, json })
    expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
  })

  test('a token that was there before signing in is not the one after it', async () => {
    const person = await signUp(service)
    const fixed = 'A'.repeat(43)
    const answer = await service.client.send('POST', '/v1/session', {
      key: null,
      headers: { ...pageHeaders(service.url), cookie: `postern_session=${fixed}` },
      json: { email: person.email, password: goodPassword },
    })
    expect(answer.status).toBe(201)
    expect(tokenIn(answer)).not.toBe(fixed)
    const again = await person.send('GET', '/v1/session', { headers: { cookie: `postern_session=${fixed}` } })
    expect(again.status).toBe(401)
  })

  test.each([
    ['an unknown token', (token: string) => `postern_session=${token.slice(0, -4)}AAAA`],
    ['an empty one', () => 'postern_session='],
    ['two of them', (token: string) => `postern_session=${token}; postern_session=${token}`],
    ['one under the name of TLS', (token: string) => `__Host-postern_session=${token}`],
    ['one in quotes', (token: string) => `postern_session="${token}"`],
  ])('a cookie is refused with %s', async (_, cookieOf) => {
    const person = await signUp(service)
    const { status } = await person.send('GET', '/v1/session', { headers: { cookie: cookieOf(person.token) } })
    expect(status).toBe(401)
  })

  test('a key is not taken for a cookie, nor a token for a key', async () => {
    const person = await signUp(service)
    const headers = { cookie: `postern_session=${service.keys.live}` }
    expect((await person.send('GET', '/v1/session', { headers })).status).toBe(401)
    expect((await service.client.send('GET', '/v1/webhooks', { key: person.token })).status).toBe(401)
  })

  test('the cookie is never looked at beside an Authorization header', async () => {
    const person = await signUp(service)
    const send = (key: string, path: string) =>
      service.client.send('GET', path, { key, headers: person.headers() }).then(({ status }) => status)
    expect(await send(service.keys.revoked, '/v1/webhooks')).toBe(401)
    expect(await send(service.keys.live, '/v1/session')).toBe(401)
    expect(await send(service.keys.live, '/v1/members')).toBe(401)
    expect(await send(service.keys.live, '/v1/webhooks')).toBe(200)
  })

  test('neither token nor password is stored as it is', async () => {
    const person = await signUp(service)
    const { db } = service.database
    const rows = [
      await db.selectFrom('user_sessions').selectAll().execute(),
      await db.selectFrom('users').selectAll().execute(),
    ]
    const text = JSON.stringify(rows)
    expect(text).toContain(person.userId)
    for (const secret of [person.token, Buffer.from(person.token).toString('hex'), goodPassword])
      expect(text).not.toContain(secret)
  })
})

test('the cookie cannot be read by scripts, nor be sent along by requests of other sites that change something', async () => {
  const person = await signUp(service)
  const { headers } = await signIn(service, { email: person.email })
  expect(headers['set-cookie']).toMatch(/^postern_session=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/)
  expect(headers['cache-control']).toBe('no-store')
})

test('behind TLS the cookie has the prefix of one host, is secure, and only the public origin is ours', async () => {
  await using behind = await startTestService({ roles: { worker: false }, publicUrl: 'https://mail.example.com' })
  const person = await signUp(service)
  const send = (origin: string) =>
    behind.client.send('POST', '/v1/session', {
      key: null,
      headers: { 'x-postern-dashboard': '1', origin },
      json: { email: person.email, password: goodPassword },
    })
  expect((await send(behind.url)).status).toBe(403)
  expect((await send('https://mail.example.com')).status).toBe(401)
  const headers = { 'x-postern-dashboard': '1', origin: 'https://mail.example.com' }
  const json = { token: await invite(behind), name: 'Ada', password: goodPassword }
  const answer = await behind.client.send('POST', '/v1/links/accept', { key: null, headers, json })
  expect(answer.headers['set-cookie']).toMatch(/^__Host-postern_session=[\w-]{43}; Path=\/; .*; Secure$/)
  const get = (name: string) => {
    const cookie = `${name}=${tokenIn(answer)}`
    return behind.client.send('GET', '/v1/session', { key: null, headers: { ...headers, cookie } })
  }
  expect((await get('postern_session')).status).toBe(401)
  expect((await get('__Host-postern_session')).status).toBe(200)
})
