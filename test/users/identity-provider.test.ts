import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { providerMinutes } from '../../contract/identities.ts'
import { createUserOperatorService } from '../../server/users/operator.ts'
import type { Answer } from '../support/client.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import {
  answerIn,
  type Begun,
  beginLink,
  beginSignIn,
  type IdentityProvider,
  startIdentityProvider,
} from '../support/identity-provider.ts'
import { errorOf, statusOf } from '../support/passkeys.ts'
import { goodPassword, type Person, pageHeaders, personOf, signIn, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let time: TestTime
let provider: IdentityProvider

beforeAll(async () => {
  time = createTestTime()
  provider = await startIdentityProvider({ redirectUri: () => `${service.url}/app/provider` })
  service = await startTestService({ roles: { worker: false }, time, identityProvider: provider.settings })
})
afterAll(async () => {
  await service.stop()
  await provider[Symbol.asyncDispose]()
})
// Requests without a session are limited to so many a minute.
beforeEach(() => time.advance(60_000))

const open = (method: string, path: string, json: unknown, cookie?: string) =>
  service.client.send(method, path, {
    key: null,
    headers: { ...pageHeaders(service.url), ...(cookie !== undefined && { cookie }) },
    json,
  })

const begin = () => beginSignIn(service)

/** Signs a person in at the provider, and then here. Returns the answer as it is. */
async function signInAs(login: string): Promise<Answer> {
  const { url, cookie } = await begin()
  return open('POST', '/v1/session/provider', answerIn(await provider.signIn(url, login)), cookie)
}

/** Sends the answer of the provider in the session of a user. */
function sendLink(person: Person, { cookie }: Pick<Begun, 'cookie'>, json: unknown): Promise<Answer> {
  const headers = { ...person.headers(), cookie: `${person.headers().cookie}; ${cookie}` }
  return service.client.send('POST', '/v1/user/identities', { key: null, headers, json })
}

async function linkTo(person: Person, login: string): Promise<Answer> {
  const begun = await beginLink(person)
  return sendLink(person, begun, answerIn(await provider.signIn(begun.url, login)))
}

async function linkedPerson(login: string): Promise<Person> {
  const person = await signUp(service)
  const { status, text } = await linkTo(person, login)
  if (status !== 201) throw new Error(`linking answered ${status}: ${text}`)
  return person
}

test('an identity provider signs in the user who is linked, by issuer and subject, without password and second factor', async () => {
  const person = await linkedPerson('ada')
  const answer = await signInAs('ada')
  expect(answer.status).toBe(201)
  const again = personOf(service, { email: person.email, answer })
  expect(Object((await again.send('GET', '/v1/session')).body).user.id).toBe(person.userId)
  expect((await person.send('GET', '/v1/user/identities')).body).toMatchObject({
    data: [{ issuer: provider.settings.issuer, label: 'ada@example.com', lastUsedAt: time.clock.now().toISOString() }],
  })
})

test('an identity provider signs in no user by their email address', async () => {
  const person = await signUp(service, { email: 'same-address@example.com' })
  const answer = await signInAs('same-address')
  expect(answer.status).toBe(401)
  expect(errorOf(answer).message).toContain('No user is linked to you')
  expect(person.email).toBe('same-address@example.com')
})

test('an identity provider is told to the page to sign in', async () => {
  const { body } = await service.client.send('GET', '/v1/sign-in-methods', {
    key: null,
    headers: { 'x-postern-dashboard': '1' },
  })
  expect(body).toMatchObject({ provider: { name: provider.settings.name, origin: service.url } })
})

test('an identity provider is asked with PKCE, and leads back to the service, not to the host of the request', async () => {
  const headers = { ...pageHeaders(service.url), host: 'evil.example', origin: 'http://evil.example' }
  const { body } = await service.client.send('POST', '/v1/session/provider/options', { key: null, headers, json: {} })
  const { searchParams } = new URL(Object(body).url)
  expect(searchParams.get('redirect_uri')).toBe(`${service.url}/app/provider`)
  expect(searchParams.get('code_challenge_method')).toBe('S256')
})

test('a subject with a control character links nobody, and does not fail', async () => {
  const answer = await linkTo(await signUp(service), 'nul\u0000')
  expect([answer.status, errorOf(answer).code]).toEqual([401, 'authentication_error'])
})

describe('an answer of the provider is refused', () => {
  let login: string
  beforeAll(async () => {
    login = 'grace'
    await linkedPerson(login)
  })

  test('an answer of the provider is refused without a state, and with another one', async () => {
    const { url, cookie } = await begin()
    const { state: _, ...withoutState } = answerIn(await provider.signIn(url, login))
    expect(await statusOf(open('POST', '/v1/session/provider', withoutState, cookie))).toBe(400)
    const other = { ...withoutState, state: new URL((await begin()).url).searchParams.get('state') }
    expect(await statusOf(open('POST', '/v1/session/provider', other, cookie))).toBe(401)
  })

  test('an answer of the provider is refused in a browser that did not ask for it: signing another person in as the attacker', async () => {
    const { url } = await begin()
    const answer = answerIn(await provider.signIn(url, login))
    expect(await statusOf(open('POST', '/v1/session/provider', answer))).toBe(401)
    const { cookie: others } = await begin()
    expect(await statusOf(open('POST', '/v1/session/provider', answer, others))).toBe(401)
  })

  test('an answer of the provider is refused when it is sent again', async () => {
    const { url, cookie } = await begin()
    const answer = answerIn(await provider.signIn(url, login))
    const send = () => statusOf(open('POST', '/v1/session/provider', answer, cookie))
    expect(await send()).toBe(201)
    expect(await send()).toBe(401)
  })

  test('an answer of the provider is refused with a code that was made for another request', async () => {
    const [mine, theirs] = [await begin(), await begin()]
    const { code } = answerIn(await provider.signIn(theirs.url, login))
    const answer = { ...answerIn(await provider.signIn(mine.url, login)), code }
    expect(await statusOf(open('POST', '/v1/session/provider', answer, mine.cookie))).toBe(401)
  })

  test('an answer of the provider is refused from another issuer, and without the issuer that the provider promises to name (RFC 9207)', async () => {
    for (const iss of ['https://evil.example', undefined]) {
      const { url, cookie } = await begin()
      const answer = { ...answerIn(await provider.signIn(url, login)), iss }
      expect(await statusOf(open('POST', '/v1/session/provider', answer, cookie))).toBe(401)
    }
  })

  test(`an answer of the provider is refused after ${providerMinutes} minutes, and with a cookie that was altered`, async () => {
    const { url, cookie } = await begin()
    const answer = answerIn(await provider.signIn(url, login))
    expect(await statusOf(open('POST', '/v1/session/provider', answer, `${cookie.slice(0, -4)}AAAA`))).toBe(401)
    await time.advance(providerMinutes * 60_000)
    expect(await statusOf(open('POST', '/v1/session/provider', answer, cookie))).toBe(401)
  })
})

test('linking asks for the password', async () => {
  const person = await signUp(service)
  const ask = (json: object) => statusOf(person.send('POST', '/v1/user/identities/options', { json }))
  expect(await ask({})).toBe(401)
  expect(await ask({ password: 'not the password' })).toBe(401)
})

test('linking takes no answer that was asked for by another user, another session, or to sign in', async () => {
  const [person, other] = [await signUp(service), await signUp(service)]
  const elsewhere = personOf(service, { email: person.email, answer: await signIn(service, { email: person.email }) })
  for (const begun of [await beginLink(other), await beginLink(elsewhere), await begin()]) {
    const answer = answerIn(await provider.signIn(begun.url, 'linus'))
    expect(await statusOf(sendLink(person, begun, answer))).toBe(401)
  }
  const begun = await beginLink(person)
  const answer = answerIn(await provider.signIn(begun.url, 'linus'))
  expect(await statusOf(open('POST', '/v1/session/provider', answer, begun.cookie))).toBe(401)
})

test('linking links one user to a person, and a user to one person', async () => {
  const person = await linkedPerson('barbara')
  expect(await statusOf(linkTo(await signUp(service), 'barbara'))).toBe(409)
  const again = person.send('POST', '/v1/user/identities/options', { json: { password: goodPassword } })
  expect(await statusOf(again)).toBe(409)
})

test('linking ends with the link, and with a reset of the password', async () => {
  const [person, other] = [await linkedPerson('edsger'), await linkedPerson('tony')]
  const { body } = await person.send('GET', '/v1/user/identities')
  const path = `/v1/user/identities/${Object(body).data[0].id}`
  expect(await statusOf(other.send('DELETE', path))).toBe(404)
  expect(await statusOf(person.send('DELETE', path))).toBe(204)
  expect(await statusOf(signInAs('edsger'))).toBe(401)
  const operator = createUserOperatorService({ clock: time.clock, serviceUrl: () => service.url })
  const { link } = await operator.resetPassword(service.database.db, other.email)
  const token = link.slice(link.indexOf('token=') + 6)
  const accepted = open('POST', '/v1/links/accept', { token, password: 'another battery staple' })
  expect(await statusOf(accepted)).toBe(201)
  expect(await statusOf(signInAs('tony'))).toBe(401)
})

test('linking is not taken away from a user without another way in', async () => {
  const person = await linkedPerson('alan')
  const { db } = service.database
  await db.updateTable('users').set({ password_hash: null }).where('id', '=', person.userId).execute()
  const { body } = await person.send('GET', '/v1/user/identities')
  expect(await statusOf(person.send('DELETE', `/v1/user/identities/${Object(body).data[0].id}`))).toBe(409)
  expect(await statusOf(signInAs('alan'))).toBe(201)
})

test('a provider that is out of reach is an error at sign-in and no failed start, and is asked again', async () => {
  const down = await startIdentityProvider({ redirectUri: () => `${other.url}/app/provider` })
  const { issuer } = down.settings
  await down[Symbol.asyncDispose]()
  const other = await startTestService({ roles: { worker: false }, identityProvider: down.settings })
  const ask = () =>
    other.client.send('POST', '/v1/session/provider/options', { key: null, headers: pageHeaders(other.url), json: {} })
  const answer = await ask()
  expect(answer.status).toBe(503)
  expect(errorOf(answer).message).toContain('cannot be asked just now')
  const port = Number(new URL(issuer).port)
  await using _ = await startIdentityProvider({ redirectUri: () => `${other.url}/app/provider`, port })
  expect(await statusOf(ask())).toBe(200)
  await other.stop()
})
