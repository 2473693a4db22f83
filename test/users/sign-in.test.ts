import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { secretBox } from '../../server/secrets/secret-box.ts'
import { createUserOperatorService } from '../../server/users/operator.ts'
import { createPasswords } from '../../server/users/passwords.ts'
import { createSignInService } from '../../server/users/sign-in.ts'
import { createSignInDelays, delayAfter, deleteOldSignInFailures, maxPairs } from '../../server/users/sign-in-delays.ts'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import type { Answer } from '../support/client.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { untilSessionsWait } from '../support/locks.ts'
import { goodPassword, type Person, pageHeaders, personOf, signIn, signUp } from '../support/people.ts'
import { encryptionKey, startTestService, type TestService } from '../support/service.ts'

let service: TestService
let time: TestTime

beforeAll(async () => {
  time = createTestTime()
  service = await startTestService({ roles: { worker: false }, time })
})
afterAll(() => service.stop())
// Requests without a session are limited to so many a minute.
beforeEach(() => time.advance(60_000))

/** Returns the contents of an error response, without the id of its request. */
function toldBy({ status, body, headers }: Answer) {
  const { code, message } = Object(body).error
  const names = Object.keys(headers).toSorted()
  return { status, code, message, names, length: headers['content-length'] }
}

test('signing in answers an unknown address and a wrong password in the same words, headers and length', async () => {
  const { email } = await signUp(service)
  const wrong = await signIn(service, { email, password: 'not the password' })
  const unknown = await signIn(service, { email: 'nobody@example.com', password: 'not the password' })
  expect(toldBy(unknown)).toEqual(toldBy(wrong))
  expect(wrong).toMatchObject({ status: 401, body: { error: { code: 'authentication_error' } } })
})

test('signing in ends the session that the browser had before, and no other', async () => {
  const [person, other] = [await signUp(service), await signUp(service)]
  const again = (cookie: string) =>
    service.client.send('POST', '/v1/session', {
      key: null,
      headers: { ...pageHeaders(service.url), cookie },
      json: { email: person.email, password: goodPassword },
    })
  const elsewhere = personOf(service, { email: person.email, answer: await signIn(service, { email: person.email }) })
  expect((await again(`postern_session=${person.token}`)).status).toBe(201)
  const status = async ({ send }: Person) => (await send('GET', '/v1/session')).status
  expect([await status(person), await status(elsewhere), await status(other)]).toEqual([401, 200, 200])
})

test('signing in takes the address in any letter case', async () => {
  const { email } = await signUp(service)
  expect((await signIn(service, { email: email.toUpperCase() })).status).toBe(201)
})

test('signing in slows failures for an address down, and says for how long', async () => {
  const { email } = await signUp(service)
  const fail = () => signIn(service, { email, password: 'not the password' })
  for (let failure = 0; failure < 5; failure += 1) expect((await fail()).status).toBe(401)
  const refused = await fail()
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1'])
  expect((await signIn(service, { email })).status).toBe(429)
  await time.advance(1_000)
  expect((await fail()).status).toBe(401)
  expect((await fail()).headers['retry-after']).toBe('2')
  await time.advance(2_000)
  expect((await signIn(service, { email })).status).toBe(201)
  expect((await fail()).status).toBe(401)
})

test('signing in slows them down in the same way where there is no user', async () => {
  const fail = () => signIn(service, { email: 'nobody-2@example.com', password: 'not the password' })
  const statuses: number[] = []
  for (let failure = 0; failure < 6; failure += 1) statuses.push((await fail()).status)
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
})

test('signing in lets no more tries through when they come at once', async () => {
  const { email } = await signUp(service)
  const tries = Array.from({ length: 12 }, () => signIn(service, { email, password: 'not the password' }))
  const statuses = (await Promise.all(tries)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 401)).toHaveLength(5)
  expect(statuses.filter((status) => status === 429)).toHaveLength(7)
})

test('signing in is limited to 60 requests a minute of one client address', async () => {
  await time.advance(60_000)
  const look = () =>
    service.client.send('POST', '/v1/links/look-up', {
      key: null,
      headers: { 'x-postern-dashboard': '1', origin: service.url },
      json: { token: 'unknown' },
    })
  for (let request = 0; request < 60; request += 1) expect((await look()).status).toBe(404)
  const refused = await look()
  expect(refused.status).toBe(429)
  expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0' })
  await time.advance(60_000)
  expect((await look()).status).toBe(404)
})

const begin = (pair: { email: string; client: string }) =>
  createSignInDelays({ clock: time.clock }).begin(service.database.db, pair)

test('the delays of failures double up to 15 minutes', () => {
  expect([4, 5, 6, 7, 8].map(delayAfter)).toEqual([0, 1_000, 2_000, 4_000, 8_000])
  expect(delayAfter(1_000)).toBe(15 * 60_000)
})

test('the delays of failures of one client do not hold up another, so that a stranger locks no user out', async () => {
  const email = 'ada@example.com'
  for (let failure = 0; failure < 5; failure += 1) await begin({ email, client: '192.0.2.1' })
  await expect(begin({ email, client: '192.0.2.1' })).rejects.toThrow(/Too many failed tries/)
  await begin({ email, client: '192.0.2.2' })
})

test('the delays of failures are forgotten an hour after the last failure', async () => {
  const pair = { email: 'grace@example.com', client: '192.0.2.1' }
  for (let failure = 0; failure < 5; failure += 1) await begin(pair)
  await time.advance(3_600_000)
  for (let failure = 0; failure < 5; failure += 1) await begin(pair)
  await expect(begin(pair)).rejects.toThrow(/Too many failed tries/)
})

test('the delays of failures reach 15 minutes and stay there', async () => {
  const pair = { email: 'edsger@example.com', client: '192.0.2.1' }
  for (let failure = 0; failure < 20; failure += 1) {
    await begin(pair)
    await time.advance(delayAfter(failure + 1))
  }
  await begin(pair)
  await time.advance(15 * 60_000 - 1)
  await expect(begin(pair)).rejects.toThrow('try again in 1 second.')
  await time.advance(1)
  await begin(pair)
})

test('the delays of failures hold in all processes together, and a right password in one ends them in all', async () => {
  await using other = await startTestService({ beside: service, roles: { worker: false }, time })
  const { email } = await signUp(service)
  const failAt = async (process: TestService) => (await signIn(process, { email, password: 'not the password' })).status
  const tries = Array.from({ length: 12 }, (_, index) => failAt(index % 2 === 0 ? service : other))
  const statuses = await Promise.all(tries)
  expect(statuses.filter((status) => status === 401)).toHaveLength(5)
  expect(statuses.filter((status) => status === 429)).toHaveLength(7)
  expect((await signIn(other, { email })).status).toBe(429)
  await time.advance(1_000)
  expect((await signIn(other, { email })).status).toBe(201)
  expect(await failAt(service)).toBe(401)
})

test('the delays of failures are kept for 100,000 pairs, the latest ones, and name no address', async () => {
  const { db } = service.database
  const pair = { email: 'barbara@example.com', client: '192.0.2.1' }
  for (let failure = 0; failure < 5; failure += 1) await begin(pair)
  const before = new Date(time.clock.now().getTime() - 1)
  await sql`
      INSERT INTO sign_in_failures (pair_hash, failures, last_at)
      SELECT sha256(n::text::bytea), 5, ${before} FROM generate_series(1, ${maxPairs}) n
    `.execute(db)
  await deleteOldSignInFailures({ db, clock: time.clock })
  const count = () => db.selectFrom('sign_in_failures').select(({ fn }) => fn.countAll<string>().as('count'))
  expect(await count().executeTakeFirst()).toEqual({ count: String(maxPairs) })
  await expect(begin(pair)).rejects.toThrow(/Too many failed tries/)
  const { rows } = await sql`
      SELECT failures FROM sign_in_failures f WHERE encode(pair_hash, 'escape') || f::text LIKE '%barbara%'
    `.execute(db)
  expect(rows).toEqual([])
  await time.advance(3_600_000)
  await deleteOldSignInFailures({ db, clock: time.clock })
  expect(await count().executeTakeFirst()).toEqual({ count: '0' })
})

test('an unknown user costs the same hash as a known one', async () => {
  const passwords = createPasswords()
  const stored = await passwords.hash(goodPassword)
  expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  const used = async (hash: string | null) => {
    const before = process.cpuUsage()
    for (let round = 0; round < 5; round += 1) await passwords.verify(hash, 'not the password')
    return process.cpuUsage(before).user
  }
  await used(stored)
  const [known, unknown] = [await used(stored), await used(null)]
  expect(unknown).toBeGreaterThan(known / 3)
  expect(await passwords.verify(null, '')).toBe(false)
})

test('one hash is made for an unknown address, as for a known one', async () => {
  const { email } = await signUp(service)
  const passwords = createPasswords()
  const checked: string[] = []
  const signing = createSignInService({
    clock: time.clock,
    secretBox: secretBox(encryptionKey),
    delays: createSignInDelays({ clock: time.clock }),
    passwords: {
      ...passwords,
      verify(stored, password) {
        checked.push(password)
        return passwords.verify(stored, password)
      },
    },
  })
  const client = { ipAddress: '192.0.2.1', network: '192.0.2.1', userAgent: '' }
  for (const address of [email, 'nobody@example.com']) {
    const given = { email: address, password: `wrong for ${address}` }
    await expect(signing.signIn(service.database.db, given, client)).rejects.toMatchObject({
      code: 'authentication_error',
    })
  }
  expect(checked).toEqual([`wrong for ${email}`, 'wrong for nobody@example.com'])
})

/** Gives a person a second factor. Returns its secret and the recovery codes. */
async function enable(person: Person) {
  const made = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const { secret } = Object(made.body)
  const code = totpCode(secret, stepAt(time.clock.now()))
  const { status, body } = await person.send('POST', '/v1/user/totp/confirm', { json: { code } })
  expect(status).toBe(200)
  // The code of this step has been used.
  await time.advance(30_000)
  return { secret, recoveryCodes: Object(body).recoveryCodes as string[] }
}
const codeNow = (secret: string) => totpCode(secret, stepAt(time.clock.now()))
const codeOf = ({ body }: Answer) => Object(body).error?.code

test('a second factor that is asked for counts as no failure, however often', async () => {
  const person = await signUp(service)
  await enable(person)
  for (let round = 0; round < 7; round += 1) {
    expect(codeOf(await signIn(service, { email: person.email }))).toBe('second_factor_needed')
  }
})

test('a second factor is asked for only when the password is right', async () => {
  const person = await signUp(service)
  const { email } = person
  const { secret } = await enable(person)
  expect(codeOf(await signIn(service, { email }))).toBe('second_factor_needed')
  expect(codeOf(await signIn(service, { email, password: 'not the password' }))).toBe('authentication_error')
  expect(codeOf(await signIn(service, { email, password: 'not it', code: codeNow(secret) }))).toBe(
    'authentication_error',
  )
  expect((await signIn(service, { email, code: codeNow(secret) })).status).toBe(201)
})

test('a second factor is not in use before its first code is confirmed', async () => {
  const person = await signUp(service)
  await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const wrong = await person.send('POST', '/v1/user/totp/confirm', { json: { code: '000000' } })
  expect(wrong.status).toBe(401)
  expect((await signIn(service, { email: person.email })).status).toBe(201)
})

test('a second factor is confirmed within 15 minutes, or begun again', async () => {
  const person = await signUp(service)
  const begin = async () => {
    const { body } = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
    return String(Object(body).secret)
  }
  const confirm = async (secret: string) =>
    (await person.send('POST', '/v1/user/totp/confirm', { json: { code: codeNow(secret) } })).status
  const secret = await begin()
  await time.advance(15 * 60_000)
  expect(await confirm(secret)).toBe(409)
  const another = await begin()
  await time.advance(15 * 60_000 - 1)
  expect(await confirm(another)).toBe(200)
})

test('a second factor counts wrong codes before it is in use too, so that its secret is not guessed', async () => {
  const person = await signUp(service)
  const made = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const confirm = (code: string) => person.send('POST', '/v1/user/totp/confirm', { json: { code } })
  const right = codeNow(Object(made.body).secret)
  const wrong = right === '000000' ? '000001' : '000000'
  for (let failure = 0; failure < 5; failure += 1) expect((await confirm(wrong)).status).toBe(401)
  expect((await confirm(right)).status).toBe(429)
  // Another secret does not begin the count again, nor does removing this one.
  await person.send('POST', '/v1/user/totp/remove', { json: { password: goodPassword } })
  const again = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const code = () => codeNow(Object(again.body).secret)
  expect((await confirm(code())).status).toBe(429)
  await time.advance(1_000)
  expect((await confirm(code())).status).toBe(200)
  await time.advance(30_000)
  expect((await signIn(service, { email: person.email, code: code() })).status).toBe(201)
})

test.each(['a link', 'the user'])(
  'a second factor that is not confirmed ends when %s sets a new password',
  async (by) => {
    const person = await signUp(service)
    const made = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
    const password = 'a password that is new'
    const json = { password: { current: goodPassword, new: password } }
    if (by === 'the user') expect((await person.send('PATCH', '/v1/user', { json })).status).toBe(200)
    else {
      const operator = createUserOperatorService({ clock: service.clock, serviceUrl: () => service.url })
      const { link } = await operator.resetPassword(service.database.db, person.email)
      const reset = await service.client.send('POST', '/v1/links/accept', {
        key: null,
        headers: pageHeaders(service.url),
        json: { token: link.slice(link.indexOf('#token=') + 7), password },
      })
      expect(reset.status).toBe(201)
    }
    const answer = await signIn(service, { email: person.email, password })
    const { send } = personOf(service, { email: person.email, answer })
    const code = codeNow(Object(made.body).secret)
    expect((await send('POST', '/v1/user/totp/confirm', { json: { code } })).status).toBe(409)
  },
)

test('a second factor takes a code once, also from two requests at the same time', async () => {
  const person = await signUp(service)
  const { secret } = await enable(person)
  const code = codeNow(secret)
  const { db } = service.database
  // Both have come to the code before either has used it.
  const trying = await db.transaction().execute(async (trx) => {
    await trx.selectFrom('users').select('id').where('id', '=', person.userId).forUpdate().execute()
    const answers = [1, 2].map(() => signIn(service, { email: person.email, code }))
    await untilSessionsWait(db, 2)
    return { answers }
  })
  const statuses = (await Promise.all(trying.answers)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([201, 401])
  expect((await signIn(service, { email: person.email, code })).status).toBe(401)
})

test('a second factor takes the code that confirmed it no second time', async () => {
  const person = await signUp(service)
  const made = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
  const code = codeNow(Object(made.body).secret)
  await person.send('POST', '/v1/user/totp/confirm', { json: { code } })
  expect((await signIn(service, { email: person.email, code })).status).toBe(401)
})

test('a second factor is replaced by each recovery code once', async () => {
  const person = await signUp(service)
  const { recoveryCodes } = await enable(person)
  expect(recoveryCodes).toHaveLength(10)
  const [first = '', second = ''] = recoveryCodes
  expect((await signIn(service, { email: person.email, code: first.toUpperCase() })).status).toBe(201)
  expect((await signIn(service, { email: person.email, code: first })).status).toBe(401)
  expect((await signIn(service, { email: person.email, code: second })).status).toBe(201)
})

test('a second factor is slowed down for guesses from all clients together, and a recovery code still lets in', async () => {
  const person = await signUp(service)
  const { secret, recoveryCodes } = await enable(person)
  await service.database.db
    .updateTable('users')
    .set({ totp_failures: 9, totp_failed_at: time.clock.now() })
    .where('id', '=', person.userId)
    .execute()
  const { status, headers } = await signIn(service, { email: person.email, code: codeNow(secret) })
  expect([status, headers['retry-after']]).toEqual([429, '16'])
  expect((await signIn(service, { email: person.email, code: recoveryCodes[0] ?? '' })).status).toBe(201)
})

test('a second factor counts a wrong code although the request fails', async () => {
  const person = await signUp(service)
  await enable(person)
  await signIn(service, { email: person.email, code: '000000' })
  const { totp_failures: failures } = await service.database.db
    .selectFrom('users')
    .select('totp_failures')
    .where('id', '=', person.userId)
    .executeTakeFirstOrThrow()
  expect(failures).toBe(1)
})

test('a second factor is removed with the password alone, and stored as no text that could be read', async () => {
  const person = await signUp(service)
  const { secret } = await enable(person)
  const row = await service.database.db
    .selectFrom('users')
    .selectAll()
    .where('id', '=', person.userId)
    .executeTakeFirstOrThrow()
  expect(row.totp_secret?.toString('latin1')).not.toContain(secret)
  const wrong = await person.send('POST', '/v1/user/totp/remove', { json: { password: 'not the password' } })
  expect(wrong.status).toBe(401)
  const right = await person.send('POST', '/v1/user/totp/remove', { json: { password: goodPassword } })
  expect(right.status).toBe(204)
  expect((await signIn(service, { email: person.email })).status).toBe(201)
})
