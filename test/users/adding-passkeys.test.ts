import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { maxPasskeys, passkeyMinutes } from '../../contract/passkeys.ts'
import { newId } from '../../server/shared/ids.ts'
import { createAuthenticator, type Deviation } from '../support/authenticator.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import {
  addPasskey,
  enableTotp,
  errorOf,
  optionsFor,
  passkeyOrigin,
  passkeysOf,
  statusOf,
  tryToAdd,
} from '../support/passkeys.ts'
import { goodPassword, type Person, personOf, signIn, signUp } from '../support/people.ts'
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

describe('adding a passkey', () => {
  let shared: Person
  beforeAll(async () => {
    shared = await signUp(service)
  })

  test('adding a passkey asks for the password, and counts wrong ones', async () => {
    const person = await signUp(service)
    const ask = (json: object) => statusOf(person.send('POST', '/v1/user/passkeys/options', { json }))
    expect(await ask({})).toBe(401)
    const statuses: number[] = []
    for (let round = 0; round < 6; round += 1) statuses.push(await ask({ password: 'not the password' }))
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
  })

  test('adding a passkey asks a user with a second factor for a code too', async () => {
    const person = await signUp(service)
    const code = await enableTotp(person, time)
    const ask = (more: object) =>
      person.send('POST', '/v1/user/passkeys/options', { json: { password: goodPassword, ...more } })
    expect(errorOf(await ask({})).code).toBe('second_factor_needed')
    expect(await statusOf(ask({ code: '000000' }))).toBe(401)
    expect(await statusOf(ask({ code: code() }))).toBe(200)
  })

  test('adding a passkey takes a user without a password who has just signed in, and no other', async () => {
    const person = await signUp(service)
    await service.database.db
      .updateTable('users')
      .set({ password_hash: null })
      .where('id', '=', person.userId)
      .execute()
    const ask = () => person.send('POST', '/v1/user/passkeys/options', { json: {} })
    await time.advance(10 * 60_000)
    expect(await statusOf(ask())).toBe(200)
    await time.advance(1)
    expect(errorOf(await ask()).message).toContain('sign in again')
    expect(Object((await person.send('GET', '/v1/session')).body).user.hasPassword).toBe(false)
    expect(await statusOf(signIn(service, { email: person.email }))).toBe(401)
  })

  test('adding a passkey names the passkeys that the user has, so that a browser adds none twice', async () => {
    const person = await signUp(service)
    await addPasskey(service, person)
    const { excludeCredentials, rp, user } = await optionsFor(person)
    expect(excludeCredentials).toMatchObject([{ type: 'public-key', transports: ['internal'] }])
    expect(rp.id).toBe('localhost')
    expect(Buffer.from(user.id, 'base64url').toString()).toBe(person.userId)
  })

  test.each<[string, Deviation]>([
    ['a page of another origin', { origin: 'https://evil.example' }],
    ['another host name', { rpId: 'evil.example' }],
    ['another purpose', { type: 'webauthn.get' }],
    ['another challenge', { challenge: 'AAAA' }],
    ['an authenticator that has not verified its user', { isVerified: false }],
  ])('adding a passkey is refused for %s', async (_, deviation) => {
    expect(await statusOf(tryToAdd(shared, createAuthenticator({ origin }), deviation))).toBe(401)
    expect(await passkeysOf(shared)).toEqual([])
  })

  test('adding a passkey is refused with the options of another user, of another session, and after five minutes', async () => {
    const [person, other] = [await signUp(service), await signUp(service)]
    const elsewhere = personOf(service, { email: person.email, answer: await signIn(service, { email: person.email }) })
    const add = async (options: Awaited<ReturnType<typeof optionsFor>>) => {
      const json = { name: 'Laptop', ...createAuthenticator({ origin }).create(options) }
      return statusOf(person.send('POST', '/v1/user/passkeys', { json }))
    }
    expect(await add(await optionsFor(other))).toBe(401)
    expect(await add(await optionsFor(elsewhere))).toBe(401)
    const options = await optionsFor(person)
    await time.advance(passkeyMinutes * 60_000)
    expect(await add(options)).toBe(401)
    expect(await add(await optionsFor(person))).toBe(201)
  })

  test('adding a passkey is refused when the password was changed since it was proved', async () => {
    const person = await signUp(service)
    const options = await optionsFor(person)
    const password = { current: goodPassword, new: 'another battery staple' }
    const changed = await person.send('PATCH', '/v1/user', { json: { password } })
    const again = personOf(service, {
      email: person.email,
      answer: { ...changed, body: { user: { id: person.userId } } },
    })
    const json = { name: 'Laptop', ...createAuthenticator({ origin }).create(options) }
    expect(await statusOf(again.send('POST', '/v1/user/passkeys', { json }))).toBe(401)
  })

  test('adding a passkey with the same answer again does not bring back a passkey that was removed', async () => {
    const person = await signUp(service)
    const json = { name: 'Laptop', ...createAuthenticator({ origin }).create(await optionsFor(person)) }
    const added = await person.send('POST', '/v1/user/passkeys', { json })
    await person.send('DELETE', `/v1/user/passkeys/${Object(added.body).id}`)
    expect(await statusOf(person.send('POST', '/v1/user/passkeys', { json }))).toBe(401)
    expect(await passkeysOf(person)).toEqual([])
  })

  test('adding a passkey refuses a credential that is stored already, for another user too', async () => {
    const [person, other] = [await signUp(service), await signUp(service)]
    const authenticator = createAuthenticator({ origin })
    expect(await statusOf(tryToAdd(person, authenticator))).toBe(201)
    expect(await statusOf(tryToAdd(person, authenticator))).toBe(409)
    expect(await statusOf(tryToAdd(other, authenticator))).toBe(409)
  })

  test('adding a passkey does not look at an attestation, so that nothing in it is fetched or trusted', async () => {
    const person = await signUp(service)
    for (const fmt of ['packed', 'tpm', 'apple', 'fido-u2f', 'android-safetynet', 'unheard-of']) {
      const attestation = { fmt, attStmt: new Map([['x5c', [Buffer.from('no certificate')]]]) }
      expect(await statusOf(tryToAdd(person, createAuthenticator({ origin }), { attestation }))).toBe(201)
    }
  })

  test.each([
    [1_023, 201],
    [1_024, 401],
  ])('adding a passkey takes an id of up to 1,023 bytes: %i', async (idBytes, status) => {
    const person = await signUp(service)
    expect(await statusOf(tryToAdd(person, createAuthenticator({ origin, idBytes })))).toBe(status)
  })

  test('adding a passkey takes no attestation object that is not one', async () => {
    const person = await signUp(service)
    const json = { name: 'Laptop', ...createAuthenticator({ origin }).create(await optionsFor(person)) }
    for (const attestationObject of ['AAAA', 'gYGB'.repeat(2_500), 'v'.repeat(10_000)]) {
      const answer = person.send('POST', '/v1/user/passkeys', { json: { ...json, attestationObject } })
      expect(await statusOf(answer)).toBe(401)
    }
  })

  test(`adding a passkey stops at ${maxPasskeys} passkeys, also when two are added at once`, async () => {
    const person = await signUp(service)
    await addPasskey(service, person)
    const { db } = service.database
    const row = await db
      .selectFrom('passkeys')
      .selectAll()
      .where('user_id', '=', person.userId)
      .executeTakeFirstOrThrow()
    const others = Array.from({ length: maxPasskeys - 2 }, (_, index) => ({
      ...row,
      id: newId('passkey', time.clock.now()),
      credential_id: Buffer.from([index]),
      counter: 0,
    }))
    await db.insertInto('passkeys').values(others).execute()
    const adding = [1, 2, 3].map(async () => {
      const json = { name: 'Laptop', ...createAuthenticator({ origin }).create(await optionsFor(person)) }
      return () => statusOf(person.send('POST', '/v1/user/passkeys', { json }))
    })
    const statuses = await Promise.all((await Promise.all(adding)).map((add) => add()))
    expect(statuses.toSorted()).toEqual([201, 409, 409])
    expect(await statusOf(person.send('POST', '/v1/user/passkeys/options', { json: { password: goodPassword } }))).toBe(
      409,
    )
    expect(await passkeysOf(person)).toHaveLength(maxPasskeys)
  })
})
