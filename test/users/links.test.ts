import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createUserOperatorService } from '../../server/users/operator.ts'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import type { Answer } from '../support/client.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { untilSessionsWait, untilSomebodyWaits } from '../support/locks.ts'
import { goodPassword, invite, pageHeaders, personOf, signIn, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let time: TestTime
const newPassword = 'a password that is new'

beforeAll(async () => {
  time = createTestTime()
  service = await startTestService({ roles: { worker: false }, time })
})
afterAll(() => service.stop())
// Requests without a session are limited to so many a minute.
beforeEach(() => time.advance(60_000))

function open(path: string, json: object): Promise<Answer> {
  return service.client.send('POST', path, { key: null, headers: pageHeaders(service.url), json })
}
const lookUp = (token: string) => open('/v1/links/look-up', { token })
const accept = (json: object) => open('/v1/links/accept', json)

function operator() {
  return createUserOperatorService({ clock: service.clock, serviceUrl: () => service.url })
}
const tokenOf = (link: string) => link.slice(link.indexOf('#token=') + 7)
const resetToken = async (email: string) => tokenOf((await operator().resetPassword(service.database.db, email)).link)

test('the link for the first user makes an owner who is signed in, and works once', async () => {
  const link = await operator().inviteFirst(service.database.db, service.accountId)
  expect(link).toMatch(new RegExp(`^${service.url}/app/accept#token=[\\w-]{43}$`))
  const token = tokenOf(link)
  expect((await lookUp(token)).body).toMatchObject({ kind: 'first_user', email: null, role: 'owner', hasUser: false })
  const json = { token, name: 'Ada', email: 'first@example.com', password: goodPassword }
  const answer = await accept(json)
  expect(answer).toMatchObject({ status: 201, body: { accounts: [{ id: service.accountId, role: 'owner' }] } })
  const person = personOf(service, { email: json.email, answer })
  expect((await person.send('GET', '/v1/session')).status).toBe(200)
  expect((await lookUp(token)).status).toBe(404)
  expect((await accept({ ...json, email: 'second@example.com' })).status).toBe(404)
})

test('the link for the first user raced by several requests makes one user', async () => {
  const { db } = service.database
  const token = tokenOf(await operator().inviteFirst(db, service.accountId))
  // All have come to the link before any has used it.
  const racing = await db.transaction().execute(async (trx) => {
    await trx.selectFrom('user_links').select('id').where('kind', '=', 'first_user').forUpdate().execute()
    const answers = [1, 2, 3].map((runner) =>
      accept({ token, name: 'Ada', email: `runner-${runner}@example.com`, password: goodPassword }),
    )
    await untilSomebodyWaits(db, 'user_links')
    await untilSessionsWait(db, 3)
    return { answers }
  })
  const statuses = (await Promise.all(racing.answers)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([201, 404, 404])
  const users = await db.selectFrom('users').select('id').where('email', 'like', 'runner-%').execute()
  expect(users).toHaveLength(1)
})

test('the link for the first user ends when somebody joins the account in another way', async () => {
  const token = tokenOf(await operator().inviteFirst(service.database.db, service.accountId))
  await signUp(service, { role: 'viewer' })
  expect((await lookUp(token)).status).toBe(404)
  const json = { token, name: 'Ada', email: 'late-first@example.com', password: goodPassword }
  expect((await accept(json)).status).toBe(404)
})

test.each([
  ['no name', { email: 'x@example.com', password: goodPassword }],
  ['no address', { name: 'Ada', password: goodPassword }],
  ['a blank name', { name: ' \u00a0 ', email: 'x@example.com', password: goodPassword }],
  ['a name that turns the text around', { name: '\u202eevil', email: 'x@example.com', password: goodPassword }],
  ['half of a character', { name: 'Ada', email: 'x@example.com', password: '\ud800'.repeat(12) }],
  ['a short password', { name: 'Ada', email: 'x@example.com', password: 'short' }],
  ['the address as password', { name: 'Ada', email: 'long-enough@example.com', password: 'Long-Enough@example.com' }],
])('the link for the first user is refused with %s and stays usable', async (_, given) => {
  const token = tokenOf(await operator().inviteFirst(service.database.db, service.accountId))
  expect([400, 422]).toContain((await accept({ token, ...given })).status)
  expect((await lookUp(token)).status).toBe(200)
})

test('an invitation makes a user whose name has no space around it, also later', async () => {
  const token = await invite(service, { email: 'spaces@example.com', role: 'viewer' })
  const answer = await accept({ token, name: '  Ada Lovelace ', password: goodPassword })
  expect(answer).toMatchObject({ status: 201, body: { user: { name: 'Ada Lovelace' } } })
  const { send } = personOf(service, { email: 'spaces@example.com', answer })
  expect((await send('PATCH', '/v1/user', { json: { name: ' Ada King ' } })).body).toMatchObject({ name: 'Ada King' })
  expect((await send('PATCH', '/v1/user', { json: { name: 'Ada\u200b' } })).status).toBe(422)
})

test('an invitation raced by many requests makes one user', async () => {
  const token = await invite(service, { role: 'viewer' })
  const tries = [1, 2, 3, 4].map(() => accept({ token, name: 'Ada', password: goodPassword }))
  const statuses = (await Promise.all(tries)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 201)).toHaveLength(1)
  for (const status of statuses) expect([201, 404, 409, 401]).toContain(status)
})

test('an invitation expires after 7 days', async () => {
  const token = await invite(service)
  await time.advance(7 * 24 * 3_600_000 - 1_000)
  expect((await lookUp(token)).status).toBe(200)
  await time.advance(1_000)
  expect((await lookUp(token)).status).toBe(404)
  expect((await accept({ token, name: 'Ada', password: goodPassword })).status).toBe(404)
})

test('an invitation works no more when it is taken back, or when a newer one replaces it', async () => {
  const owner = await signUp(service)
  const json = { email: 'invited@example.com', role: 'viewer' }
  const tokens: string[] = []
  for (const _ of [1, 2]) {
    const made = await owner.send('POST', '/v1/invitations', { json })
    expect(made.status).toBe(201)
    tokens.push(tokenOf(Object(made.body).link))
  }
  const [older = '', newer = ''] = tokens
  expect((await lookUp(older)).status).toBe(404)
  const { body } = await owner.send('GET', '/v1/invitations')
  const mine = Object(body).data.find(({ email }: { email: string }) => email === json.email)
  expect(JSON.stringify(body)).not.toContain(newer)
  expect((await owner.send('DELETE', `/v1/invitations/${mine.id}`)).status).toBe(204)
  expect((await lookUp(newer)).status).toBe(404)
})

test('an invitation of a user who is there needs the password they have, and changes nothing of them', async () => {
  const person = await signUp(service, { accountId: service.accountId })
  await service.database.db.deleteFrom('memberships').where('user_id', '=', person.userId).execute()
  const token = await invite(service, { email: person.email, role: 'developer' })
  expect((await lookUp(token)).body).toMatchObject({ hasUser: true })
  const taken = await accept({ token, name: 'Mallory', password: 'a password of an attacker' })
  expect(taken.status).toBe(401)
  const joined = await accept({ token, name: 'Mallory', password: goodPassword })
  expect(joined).toMatchObject({
    status: 201,
    body: { user: { name: 'Ada Lovelace' }, accounts: [{ role: 'developer' }] },
  })
})

test('an invitation opens nothing to a password that was changed after it was checked', async () => {
  const person = await signUp(service)
  const { db } = service.database
  await db.deleteFrom('memberships').where('user_id', '=', person.userId).execute()
  const token = await invite(service, { email: person.email, role: 'developer' })
  const accepting = await db.transaction().execute(async (trx) => {
    await trx.selectFrom('user_links').select('id').where('email', '=', person.email).forUpdate().execute()
    const answer = accept({ token, password: goodPassword })
    await untilSomebodyWaits(db, 'user_links')
    const json = { password: { current: goodPassword, new: newPassword } }
    expect((await person.send('PATCH', '/v1/user', { json })).status).toBe(200)
    return { answer }
  })
  expect((await accepting.answer).status).toBe(401)
  expect((await accept({ token, password: newPassword })).status).toBe(201)
})

test('an invitation of somebody who is removed ends with them, and so do those they made', async () => {
  const [owner, admin] = [await signUp(service), await signUp(service, { role: 'admin' })]
  const made = await admin.send('POST', '/v1/invitations', {
    json: { email: 'back-door@example.com', role: 'admin' },
  })
  const token = tokenOf(Object(made.body).link)
  expect((await lookUp(token)).status).toBe(200)
  expect((await owner.send('DELETE', `/v1/members/${admin.userId}`)).status).toBe(204)
  expect((await lookUp(token)).status).toBe(404)
})

test('a link that resets a password sets it, ends all sessions and all other such links', async () => {
  const person = await signUp(service)
  const [older, token] = [await resetToken(person.email), await resetToken(person.email)]
  expect((await lookUp(older)).status).toBe(404)
  expect((await lookUp(token)).body).toMatchObject({ kind: 'password_reset', email: person.email, hasUser: true })
  expect((await accept({ token, password: 'short' })).status).toBe(422)
  expect((await accept({ token, password: newPassword })).status).toBe(201)
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
  expect((await accept({ token, password: newPassword })).status).toBe(404)
  expect((await signIn(service, { email: person.email })).status).toBe(401)
  expect((await signIn(service, { email: person.email, password: newPassword })).status).toBe(201)
})

test('a link that resets a password ends a session that the old password begins meanwhile', async () => {
  const person = await signUp(service)
  const { email, userId } = person
  const token = await resetToken(email)
  const { db } = service.database
  // The sign-in has its session, not committed, before the reset looks for sessions.
  const racing = await db.transaction().execute(async (log) => {
    await sql`LOCK TABLE audit_log IN EXCLUSIVE MODE`.execute(log)
    const started = await db.transaction().execute(async (links) => {
      await links.selectFrom('user_links').select('id').where('user_id', '=', userId).forUpdate().execute()
      const reset = accept({ token, password: newPassword })
      await untilSomebodyWaits(db, 'user_links')
      const signingIn = signIn(service, { email })
      await untilSessionsWait(db, 2)
      return { reset, signingIn }
    })
    await untilSomebodyWaits(db, '"users"')
    return started
  })
  const [reset, old] = await Promise.all([racing.reset, racing.signingIn])
  expect(reset.status).toBe(201)
  if (old.status === 201) {
    const taken = personOf(service, { email, answer: old })
    expect((await taken.send('GET', '/v1/session')).status).toBe(401)
  } else expect(old.status).toBe(401)
})

test('a link that resets a password expires after an hour, and with a change of the password', async () => {
  const person = await signUp(service)
  const expired = await resetToken(person.email)
  await time.advance(3_600_000)
  expect((await lookUp(expired)).status).toBe(404)
  const token = await resetToken(person.email)
  await person.send('PATCH', '/v1/user', { json: { password: { current: goodPassword, new: newPassword } } })
  expect((await lookUp(token)).status).toBe(404)
})

test('a link that resets a password does not get around the second factor, and stays usable until its code is right', async () => {
  const person = await signUp(service)
  const { body } = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const { secret } = Object(body)
  const code = () => totpCode(secret, stepAt(time.clock.now()))
  expect((await person.send('POST', '/v1/user/totp/confirm', { json: { code: code() } })).status).toBe(200)
  await time.advance(30_000)
  const token = await resetToken(person.email)
  const without = await accept({ token, password: newPassword })
  expect(without).toMatchObject({ status: 401, body: { error: { code: 'second_factor_needed' } } })
  expect((await accept({ token, password: newPassword, code: '000000' })).status).toBe(401)
  expect((await accept({ token, password: newPassword, code: code() })).status).toBe(201)
})

test('a link that resets a password of the operator removes a lost second factor when told to', async () => {
  const person = await signUp(service)
  const { body } = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const code = totpCode(Object(body).secret, stepAt(time.clock.now()))
  await person.send('POST', '/v1/user/totp/confirm', { json: { code } })
  const { link } = await operator().resetPassword(service.database.db, person.email, { removeTotp: true })
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
  const answer = await accept({ token: tokenOf(link), password: newPassword })
  expect(answer).toMatchObject({ status: 201, body: { user: { hasTotp: false } } })
})

test.each(['', 'x', '\u0000', "' OR 1=1 --", 'A'.repeat(43), 'A'.repeat(200)])('%j is no link', async (token) => {
  expect([400, 404]).toContain((await lookUp(token)).status)
})
