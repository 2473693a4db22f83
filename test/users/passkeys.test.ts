import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { passkeyMinutes } from '../../contract/passkeys.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { createUserOperatorService } from '../../server/users/operator.ts'
import { createChallenges } from '../../server/users/passkeys/challenges.ts'
import { lockPasskey } from '../../server/users/passkeys/queries.ts'
import { deleteEndedSessions } from '../../server/users/sessions.ts'
import { type Authenticator, createAuthenticator, type Deviation } from '../support/authenticator.ts'
import type { Answer } from '../support/client.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { untilSessionsWait } from '../support/locks.ts'
import {
  addPasskey,
  challengeOf,
  enableTotp,
  errorOf,
  optionsFor,
  passkeyOrigin,
  passkeysOf,
  send,
  signInWith,
  statusOf,
} from '../support/passkeys.ts'
import { goodPassword, type Person, pageHeaders, personOf, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let time: TestTime
let origin: string

beforeAll(async () => {
  time = createTestTime()
  service = await startTestService({ roles: { worker: false }, time })
  origin = passkeyOrigin(service)
})
afterAll(() => service.stop())
// Requests without a session are limited to so many a minute.
beforeEach(() => time.advance(60_000))

/** The entries of the audit log about a user, oldest first. */
async function recorded(person: Person, action: string): Promise<unknown[]> {
  const rows = await service.database.db
    .selectFrom('audit_log')
    .select('details')
    .where('action', '=', action as never)
    .where('target_id', '=', person.userId)
    .orderBy('id')
    .execute()
  return rows.map(({ details }) => details)
}

test('a passkey signs its user in, without password and second factor', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  await enableTotp(person, time)
  const answer = await signInWith(service, authenticator)
  expect(answer.status).toBe(201)
  const again = personOf(service, { email: person.email, answer })
  expect(Object((await again.send('GET', '/v1/session')).body).user.id).toBe(person.userId)
  expect((await recorded(person, 'session.signed_in')).at(-1)).toEqual({ by: 'passkey' })
})

test('a passkey is listed with its name, its times and whether it is synced', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person, { isSynced: true })
  expect(await passkeysOf(person)).toMatchObject([
    { name: 'Laptop', isSynced: true, lastUsedAt: null, refusedAt: null, createdAt: time.clock.now().toISOString() },
  ])
  await signInWith(service, authenticator)
  expect(await passkeysOf(person)).toMatchObject([{ lastUsedAt: time.clock.now().toISOString() }])
  expect(await recorded(person, 'passkey.added')).toEqual([{ passkey: 'Laptop' }])
})

test('a passkey is renamed by its user alone', async () => {
  const [person, other] = [await signUp(service), await signUp(service)]
  const { id } = await addPasskey(service, person)
  const rename = (who: Person) => who.send('PATCH', `/v1/user/passkeys/${id}`, { json: { name: ' Phone ' } })
  expect(await statusOf(rename(other))).toBe(404)
  expect((await rename(person)).body).toMatchObject({ id, name: 'Phone' })
  expect(await recorded(person, 'passkey.renamed')).toEqual([{ from: 'Laptop', to: 'Phone' }])
})

test('a passkey signs in no more once its user has removed it, and no other user can remove it', async () => {
  const [person, other] = [await signUp(service), await signUp(service)]
  const { id, authenticator } = await addPasskey(service, person)
  const remove = (who: Person) => statusOf(who.send('DELETE', `/v1/user/passkeys/${id}`))
  expect(await remove(other)).toBe(404)
  expect(await statusOf(signInWith(service, authenticator))).toBe(201)
  expect(await remove(person)).toBe(204)
  expect(await statusOf(signInWith(service, authenticator))).toBe(401)
  expect(await recorded(person, 'passkey.removed')).toEqual([{ passkey: 'Laptop' }])
})

test('a passkey ends the session that the browser had before', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  const assertion = authenticator.get(await challengeOf(service))
  expect(await statusOf(send(service, assertion, `postern_session=${person.token}`))).toBe(201)
  expect(await statusOf(person.send('GET', '/v1/session'))).toBe(401)
})

test('the page to sign in is told where passkeys work', async () => {
  const headers = { 'x-postern-dashboard': '1' }
  const { body } = await service.client.send('GET', '/v1/sign-in-methods', { key: null, headers })
  expect(body).toMatchObject({ passkeyOrigin: origin })
})

describe('signing in with a passkey is refused', () => {
  let person: Person
  let authenticator: Authenticator
  beforeAll(async () => {
    person = await signUp(service)
    authenticator = (await addPasskey(service, person)).authenticator
  })

  test('signing in with a passkey is refused when the answer is sent again, also at the same moment', async () => {
    const assertion = authenticator.get(await challengeOf(service))
    const statuses = await Promise.all([1, 2, 3].map(() => statusOf(send(service, assertion))))
    expect(statuses.toSorted()).toEqual([201, 401, 401])
    expect(await statusOf(send(service, assertion))).toBe(401)
  })

  test('signing in with a passkey is refused when the answer of an authenticator that does not count is sent again', async () => {
    const { authenticator: uncounted } = await addPasskey(service, person, { counts: false })
    const assertion = uncounted.get(await challengeOf(service))
    expect(await statusOf(send(service, assertion))).toBe(201)
    expect(await statusOf(send(service, assertion))).toBe(401)
    expect(await statusOf(signInWith(service, uncounted))).toBe(201)
  })

  test('signing in with a passkey is refused when the answer is sent again after used challenges were cleaned up', async () => {
    const assertion = authenticator.get(await challengeOf(service))
    expect(await statusOf(send(service, assertion))).toBe(201)
    await time.advance(passkeyMinutes * 60_000 - 1_000)
    await deleteEndedSessions({ db: service.database.db, clock: time.clock })
    expect(await statusOf(send(service, assertion))).toBe(401)
    await time.advance(1_000)
    await deleteEndedSessions({ db: service.database.db, clock: time.clock })
    expect(await statusOf(send(service, assertion))).toBe(401)
    expect(await service.database.db.selectFrom('used_challenges').selectAll().execute()).toEqual([])
  })

  test('signing in with a passkey is refused when the challenge is older than five minutes', async () => {
    const challenge = await challengeOf(service)
    await time.advance(passkeyMinutes * 60_000)
    expect(await statusOf(send(service, authenticator.get(challenge)))).toBe(401)
  })

  test('signing in with a passkey is refused when the challenge was made with another key', async () => {
    const foreign = createChallenges({ key: Buffer.alloc(32, 9), clock: time.clock }).make('sign in')
    expect(await statusOf(signInWith(service, authenticator, { challenge: foreign }))).toBe(401)
  })

  test('signing in with a passkey is refused when the challenge was made to add a passkey', async () => {
    const { challenge } = await optionsFor(person)
    expect(await statusOf(signInWith(service, authenticator, { challenge }))).toBe(401)
  })

  test('signing in with a passkey is refused when the challenge reads as the same bytes but is written otherwise', async () => {
    const { challenge } = await challengeOf(service)
    expect(await statusOf(signInWith(service, authenticator, { challenge: `${challenge}=` }))).toBe(401)
  })

  test.each<[string, Deviation]>([
    ['a page of another origin', { origin: 'https://evil.example' }],
    ['a page on another port', { origin: 'http://localhost:1' }],
    ['a page inside of a frame of others', { topOrigin: 'https://evil.example' }],
    ['another host name', { rpId: 'evil.example' }],
    ['another purpose', { type: 'webauthn.create' }],
    ['an authenticator that has not verified its user', { isVerified: false }],
  ])('signing in with a passkey is refused for %s', async (_, deviation) => {
    expect(await statusOf(signInWith(service, authenticator, deviation))).toBe(401)
  })

  test('signing in with a passkey is refused for a hostile Host header and the origin that goes with it', async () => {
    const headers = { ...pageHeaders(service.url), host: 'evil.example', origin: 'http://evil.example' }
    const { body } = await service.client.send('POST', '/v1/session/passkey/options', { key: null, headers })
    expect(Object(body).rpId).toBe('localhost')
    const json = authenticator.get(Object(body), { origin: 'http://evil.example', rpId: 'evil.example' })
    expect(await statusOf(service.client.send('POST', '/v1/session/passkey', { key: null, headers, json }))).toBe(401)
  })

  test('signing in with a passkey is refused with another signature', async () => {
    const assertion = authenticator.get(await challengeOf(service))
    const { signature } = authenticator.get(await challengeOf(service))
    expect(await statusOf(send(service, { ...assertion, signature }))).toBe(401)
  })

  test('signing in with a passkey is refused for another user, or with the credential of another', async () => {
    const other = await signUp(service)
    const { authenticator: theirs } = await addPasskey(service, other)
    const asOther = Buffer.from(other.userId).toString('base64url')
    expect(await statusOf(signInWith(service, authenticator, { userHandle: asOther }))).toBe(401)
    const { credentialId, userHandle } = theirs.get(await challengeOf(service))
    const assertion = authenticator.get(await challengeOf(service))
    expect(await statusOf(send(service, { ...assertion, credentialId }))).toBe(401)
    expect(await statusOf(send(service, { ...assertion, credentialId, userHandle }))).toBe(401)
  })

  test('signing in with a passkey is refused for a credential that is not stored, in the same words as for one that was removed', async () => {
    const { id, authenticator: gone } = await addPasskey(service, person)
    await person.send('DELETE', `/v1/user/passkeys/${id}`)
    const never = createAuthenticator({ origin })
    never.create(await optionsFor(person))
    const answers = [await signInWith(service, gone), await signInWith(service, never)]
    expect(answers.map(({ status }) => status)).toEqual([401, 401])
    expect(answers.map((answer) => errorOf(answer).message)).toEqual(
      Array(2).fill(
        'This passkey is not known here: it was removed, or belongs to another service. Sign in in another way.',
      ),
    )
  })

  test('signing in with a passkey is refused with bytes that are no CBOR, and with the largest that a field takes', async () => {
    const assertion = authenticator.get(await challengeOf(service))
    for (const authenticatorData of ['AAAA', 'f'.repeat(4_096), 'v'.repeat(4_096)]) {
      expect(await statusOf(send(service, { ...assertion, authenticatorData }))).toBe(401)
    }
    expect(await statusOf(send(service, { ...assertion, clientDataJSON: 'bnVsbA' }))).toBe(401)
    expect(await statusOf(send(service, { ...assertion, signature: 'x'.repeat(4_097) }))).toBe(400)
  })
})

test('a counter that went back refuses the passkey, is shown and recorded, and a later signature of the original is accepted', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  expect(await statusOf(signInWith(service, authenticator, { counter: 7 }))).toBe(201)
  for (const counter of [7, 6, 0]) {
    const answer = await signInWith(service, authenticator, { counter })
    expect(answer.status).toBe(401)
    expect(errorOf(answer).message).toContain('its counter went back')
  }
  expect(await passkeysOf(person)).toMatchObject([{ refusedAt: time.clock.now().toISOString() }])
  expect(await recorded(person, 'passkey.refused')).toEqual(Array(3).fill({ passkey: 'Laptop' }))
  expect(await statusOf(signInWith(service, authenticator, { counter: 8 }))).toBe(201)
})

test('a counter that went back is not recorded for a signature that is not right', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  await signInWith(service, authenticator, { counter: 7 })
  const forged = { ...authenticator.get(await challengeOf(service), { counter: 1 }), signature: 'MEUCIQDQ3q1v' }
  expect(await statusOf(send(service, forged))).toBe(401)
  expect(await recorded(person, 'passkey.refused')).toEqual([])
})

describe('what happens meanwhile', () => {
  test('a passkey that is removed while it signs in starts no session', async () => {
    const person = await signUp(service)
    const { id, authenticator } = await addPasskey(service, person)
    const { db } = service.database
    let signing: Promise<Answer> | undefined
    await inTransaction(db, async (trx) => {
      await lockPasskey(trx, { id, userId: person.userId })
      signing = signInWith(service, authenticator)
      await untilSessionsWait(db, 1, 'passkeys')
      await trx.deleteFrom('passkeys').where('id', '=', id).execute()
    })
    expect((await signing)?.status).toBe(401)
  })

  test('a session that is ended while it adds a passkey adds none', async () => {
    const person = await signUp(service)
    const json = { name: 'Laptop', ...createAuthenticator({ origin }).create(await optionsFor(person)) }
    const { db } = service.database
    let adding: Promise<Answer> | undefined
    await inTransaction(db, async (trx) => {
      await trx.selectFrom('users').select('id').where('id', '=', person.userId).forUpdate().execute()
      adding = person.send('POST', '/v1/user/passkeys', { json })
      await untilSessionsWait(db, 1, 'users')
      await trx.deleteFrom('user_sessions').where('user_id', '=', person.userId).execute()
    })
    expect((await adding)?.status).toBe(401)
    const rows = await db.selectFrom('passkeys').selectAll().where('user_id', '=', person.userId).execute()
    expect(rows).toEqual([])
  })
})

const operator = () => createUserOperatorService({ clock: time.clock, serviceUrl: () => service.url })

test('a reset of the password by its link removes the passkeys, and says so in the audit log', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  const { link } = await operator().resetPassword(service.database.db, person.email)
  expect(await statusOf(signInWith(service, authenticator))).toBe(201)
  const token = link.slice(link.indexOf('token=') + 6)
  const json = { token, password: 'another battery staple' }
  const headers = pageHeaders(service.url)
  expect(await statusOf(service.client.send('POST', '/v1/links/accept', { key: null, headers, json }))).toBe(201)
  expect(await statusOf(signInWith(service, authenticator))).toBe(401)
  expect((await recorded(person, 'password.changed')).at(-1)).toMatchObject({ passkeysRemoved: '1' })
})

test('a reset of the password with --remove-totp removes the passkeys at once', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  await operator().resetPassword(service.database.db, person.email, { removeTotp: true })
  expect(await statusOf(signInWith(service, authenticator))).toBe(401)
})

test('a change of the password under Security keeps the passkeys', async () => {
  const person = await signUp(service)
  const { authenticator } = await addPasskey(service, person)
  const password = { current: goodPassword, new: 'another battery staple' }
  await person.send('PATCH', '/v1/user', { json: { password } })
  expect(await statusOf(signInWith(service, authenticator))).toBe(201)
})
