import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readMailbox } from '../../server/message/mailbox.ts'
import { createUserOperatorService } from '../../server/users/operator.ts'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { type IdentityProvider, linkRequest, startIdentityProvider } from '../support/identity-provider.ts'
import { addPasskey, challengeOf, fillPasskeys, newCredential } from '../support/passkeys.ts'
import { goodPassword, invite, type Person, signIn, signUp, signUpOperator } from '../support/people.ts'
import { operationById } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'
import {
  bodyOf,
  type Call,
  call,
  codeOf,
  declaring,
  named,
  needingSession,
  ofAccounts,
  ofPeople,
  ofProvider,
  signInRequest,
  withBody,
} from '../support/session-operations.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

/*
 * Every operation of the published spec that no key may call is driven into every status it declares, as
 * every-status.test.ts does with those of keys.
 */

describe('on a service that is well', () => {
  let service: TestService
  let time: TestTime
  let owner: Person
  let provider: IdentityProvider

  beforeAll(async () => {
    time = createTestTime()
    const { mailbox: accountEmailFrom } = readMailbox('account@example.com')
    provider = await startIdentityProvider({ redirectUri: () => `${service.url}/app/provider` })
    const identityProvider = provider.settings
    service = await startTestService({ roles: { worker: false }, time, mail: { accountEmailFrom }, identityProvider })
    owner = await signUpOperator(service)
  })
  afterAll(async () => {
    await service.stop()
    await provider[Symbol.asyncDispose]()
  })
  // Requests without a session are limited to so many a minute.
  beforeEach(() => time.advance(60_000))

  const newMember = async () => ({ userId: (await signUp(service, { role: 'viewer' })).userId })
  const newInvitation = async () => {
    const json = { email: 'invited@example.com', role: 'viewer' }
    const { body } = await owner.send('POST', '/v1/invitations', { json })
    return { id: String(Object(body).id) }
  }
  const newPortalCode = async () => {
    const { body } = await service.client.send('POST', '/v1/portal-sessions', { json: { customer: '42' } })
    return String(Object(body).url).split('#code=')[1]
  }
  const secretOf = async (person: Person) => {
    const { body } = await person.send('POST', '/v1/user/totp', { json: { password: goodPassword } })
    return String(Object(body).secret)
  }
  /** Links a user to a person at the provider who has the same name as their id. Returns the id of the link. */
  const link = async (person: Person) => {
    const request = await linkRequest(provider, person, person.userId)
    const answer = await call(service, operationById('addIdentity'), { ...request, person })
    return String(Object(answer.body).id)
  }
  const codeNow = (secret: string) => totpCode(secret, stepAt(time.clock.now()))
  const firstUserToken = async () => {
    const users = createUserOperatorService({ clock: service.clock, serviceUrl: () => service.url })
    return (await users.inviteFirst(service.database.db, service.accountId)).split('#token=')[1] ?? ''
  }

  /** By operation: makes the call that succeeds, where the body alone is not enough. */
  const needs: Record<string, (person: Person) => Promise<Call>> = {
    createSession: async ({ email }) => ({ json: { email, password: goodPassword } }),
    lookUpLink: async () => ({ json: { token: await invite(service) } }),
    acceptLink: async () => ({ json: { token: await invite(service), name: 'Ada', password: goodPassword } }),
    endSession: async ({ email }) => ({
      parameters: { id: Object((await signIn(service, { email })).body).session.id },
    }),
    confirmTotp: async (person) => ({ json: { code: codeNow(await secretOf(person)) } }),
    ...Object.fromEntries(ofAccounts.map((id) => [id, async () => ({ parameters: { id: service.accountId } })])),
    updateMember: async () => ({ parameters: await newMember() }),
    removeMember: async () => ({ parameters: await newMember() }),
    openPortalSession: async () => ({ json: { code: await newPortalCode() } }),
    deleteInvitation: async () => ({ parameters: await newInvitation() }),
    signInWithPasskey: async (person) => {
      const { authenticator } = await addPasskey(service, person)
      return { json: authenticator.get(await challengeOf(service)) }
    },
    addPasskey: async (person) => ({ json: await newCredential(service, person) }),
    updatePasskey: async (person) => ({ parameters: { id: (await addPasskey(service, person)).id } }),
    signInWithProvider: async (person) => {
      await link(person)
      return signInRequest(service, provider, person.userId)
    },
    addIdentity: (person) => linkRequest(provider, person, person.userId),
    removeIdentity: async (person) => ({ parameters: { id: await link(person) } }),
    removePasskey: async (person) => ({ parameters: { id: (await addPasskey(service, person)).id } }),
  }

  test.each(named(ofPeople))('%s succeeds', async (id, operation) => {
    const person = await signUpOperator(service)
    const answer = await call(service, operation, { ...bodyOf(operation), ...(await needs[id]?.(person)), person })
    expect(answer.status).toBeGreaterThanOrEqual(200)
    expect(answer.status).toBeLessThan(300)
  })

  test.each(named(ofPeople))('%s refuses an unknown query key with 400', async (_, operation) => {
    const answer = await call(service, operation, { ...bodyOf(operation), person: owner, suffix: '?unexpected=1' })
    expect([answer.status, codeOf(answer)]).toEqual([400, 'validation_error'])
  })

  test.each(withBody)('%s refuses a body that it cannot take', async (_, operation) => {
    const headers = { 'content-type': 'application/json' }
    const faults: [Call, number, string][] = [
      [{ raw: '{', headers }, 400, 'malformed_json'],
      [{ json: { ...Object(bodyOf(operation).json), unexpected: 1 } }, 400, 'validation_error'],
      [{ raw: JSON.stringify({ name: 'x'.repeat(100_000) }), headers }, 413, 'payload_too_large'],
      [{ raw: 'a=1', headers: { 'content-type': 'text/plain' } }, 415, 'unsupported_media_type'],
    ]
    for (const [fault, status, code] of faults) {
      const answer = await call(service, operation, { ...fault, person: owner })
      expect([answer.status, codeOf(answer)]).toEqual([status, code])
    }
  })

  test.each(needingSession)(
    '%s refuses a request without a session, and one with a key, with 401',
    async (_, operation) => {
      const without = await call(service, operation, bodyOf(operation))
      expect([without.status, codeOf(without)]).toEqual([401, 'authentication_error'])
      const headers = { authorization: `Bearer ${service.keys.live}` }
      const withKey = await call(service, operation, { ...bodyOf(operation), headers, person: owner })
      expect([withKey.status, codeOf(withKey)]).toEqual([401, 'authentication_error'])
    },
  )

  test.each(named(ofPeople))('%s refuses a page of others with 403', async (_, operation) => {
    const faults = [{ 'x-postern-dashboard': '' }, ...(operation.method === 'GET' ? [] : [{ origin: 'null' }])]
    for (const headers of faults) {
      const answer = await call(service, operation, { ...bodyOf(operation), headers, person: owner })
      expect([answer.status, codeOf(answer)]).toEqual([403, 'forbidden_origin'])
    }
  })

  test.each(declaring(404))('%s answers 404 for what is not there', async (_, operation) => {
    const isOnOne = operation.parameters.path.length > 0 || operation.caller === 'none'
    if (ofProvider.includes(operation.id)) return
    const headers: Record<string, string> = isOnOne ? {} : { 'x-postern-account': 'acc_01jqz4x7m8e5v9t2k6r3w0y1ab' }
    const answer = await call(service, operation, { ...bodyOf(operation), person: owner, headers })
    expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
  })

  test.each(ofProvider)('%s answers 404 on a service without an identity provider', async (id) => {
    await using without = await startTestService({ beside: service, roles: { worker: false }, time })
    const operation = operationById(id)
    const headers = { origin: without.url }
    const answer = await call(without, operation, { ...bodyOf(operation), person: owner, headers })
    expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
  })

  test.each(named(ofPeople.filter(({ parameters }) => parameters.path.length > 0)))(
    '%s answers 404 for an id of another form',
    async (_, operation) => {
      const parameters = Object.fromEntries(operation.parameters.path.map(({ name }) => [name, "x'; --"]))
      const answer = await call(service, operation, { ...bodyOf(operation), person: owner, parameters })
      expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
    },
  )

  const wrongPassword = { password: 'not the password' }
  const refusals: [id: string, status: number, provoke: (person: Person) => Promise<Call>][] = [
    ['createSession', 401, async ({ email }) => ({ json: { email, ...wrongPassword } })],
    [
      'acceptLink',
      401,
      async () => {
        const { email, userId } = await signUp(service)
        await service.database.db.deleteFrom('memberships').where('user_id', '=', userId).execute()
        return { json: { token: await invite(service, { email }), ...wrongPassword } }
      },
    ],
    [
      'acceptLink',
      409,
      async ({ email }) => ({
        json: { token: await firstUserToken(), name: 'Ada', email, password: goodPassword },
      }),
    ],
    [
      'createTotp',
      409,
      async (person) => {
        const json = { code: codeNow(await secretOf(person)) }
        await person.send('POST', '/v1/user/totp/confirm', { json })
        return { json: { password: goodPassword } }
      },
    ],
    ['confirmTotp', 409, async () => ({ json: { code: '123456' } })],
    ['signInWithPasskey', 401, async () => ({ json: bodyOf(operationById('signInWithPasskey')).json })],
    [
      'createPasskeyOptions',
      409,
      async (person) => {
        await fillPasskeys(service, person)
        return { json: { password: goodPassword } }
      },
    ],
    [
      'addPasskey',
      409,
      async (person) => {
        const json = await newCredential(service, person)
        await fillPasskeys(service, person)
        return { json }
      },
    ],
    ['addPasskey', 422, async (person) => ({ json: { ...(await newCredential(service, person)), name: ' ' } })],
    [
      'updatePasskey',
      422,
      async (person) => ({ parameters: { id: (await addPasskey(service, person)).id }, json: { name: ' ' } }),
    ],
    ['signInWithProvider', 401, async () => signInRequest(service, provider, 'not linked')],
    [
      'beginIdentity',
      409,
      async (person) => {
        await link(person)
        return { json: { password: goodPassword } }
      },
    ],
    [
      'addIdentity',
      409,
      async (person) => {
        const request = await linkRequest(provider, person, person.userId)
        await link(person)
        return request
      },
    ],
    [
      'removeIdentity',
      409,
      async (person) => {
        const id = await link(person)
        const { db } = service.database
        await db.updateTable('users').set({ password_hash: null }).where('id', '=', person.userId).execute()
        return { parameters: { id } }
      },
    ],
    ['updateOperatorAccount', 422, async () => ({ parameters: { id: service.accountId }, json: { plan: 'none' } })],
    ['createInvitation', 409, async ({ email }) => ({ json: { email, role: 'viewer' } })],
    ['updateUser', 422, async ({ email }) => ({ json: { password: { current: goodPassword, new: email } } })],
    ['acceptLink', 422, async () => ({ json: { token: await invite(service), name: 'Ada', password: 'short' } })],
  ]
  test.each(refusals)('%s answers %i when it is not possible', async (id, status, provoke) => {
    const person = await signUpOperator(service)
    const answer = await call(service, operationById(id), { ...(await provoke(person)), person })
    expect(answer.status).toBe(status)
  })

  test.each(['updateMember', 'removeMember'])('%s keeps the last owner with 422', async (id) => {
    const person = await signUpOperator(service)
    const { db } = service.database
    await db
      .updateTable('memberships')
      .set({ role: 'admin' })
      .where('account_id', '=', service.accountId)
      .where('user_id', '<>', person.userId)
      .execute()
    const parameters = { userId: person.userId }
    const operation = operationById(id)
    const answer = await call(service, operation, { ...bodyOf(operation), person, parameters })
    expect([answer.status, codeOf(answer)]).toEqual([422, 'last_owner'])
    await db.updateTable('memberships').set({ role: 'owner' }).where('user_id', '=', owner.userId).execute()
  })

  test('requestPasswordReset answers 422 where the service sends no email to its users', async () => {
    await using without = await startTestService({ beside: service, roles: { worker: false }, time })
    const operation = operationById('requestPasswordReset')
    const answer = await call(without, operation, bodyOf(operation))
    expect([answer.status, codeOf(answer)]).toEqual([422, 'account_email_off'])
  })

  test('each 409 and 422 that is declared is provoked', () => {
    const elsewhere = ['updateMember', 'removeMember', 'requestPasswordReset'].map((id) => `${id} 422`)
    const provoked = [...refusals.map(([id, status]) => `${id} ${status}`), ...elsewhere]
    for (const status of [409, 422]) {
      for (const [id] of declaring(status)) expect(provoked).toContain(`${id} ${status}`)
    }
  })

  describe('beyond the limit of requests', () => {
    beforeAll(async () => {
      await time.advance(60_000)
    })

    test('every operation answers 429, and says how many a minute are allowed', async () => {
      const look = operationById('lookUpLink')
      for (let request = 0; request < 60; request += 1) await call(service, look, bodyOf(look))
      const get = operationById('getSession')
      for (let round = 0; round < 40; round += 1)
        await Promise.all(Array.from({ length: 30 }, () => call(service, get, { person: owner })))
      for (const [, operation] of declaring(429)) {
        const answer = await call(service, operation, { ...bodyOf(operation), person: owner })
        expect([operation.id, answer.status, codeOf(answer)]).toEqual([operation.id, 429, 'rate_limit_exceeded'])
        expect(answer.headers['x-ratelimit-limit']).toBe(operation.caller === 'none' ? '60' : '1200')
      }
    })
  })
})

describe('on a service with a fault', () => {
  let service: TestService
  let person: Person
  let provider: IdentityProvider

  beforeAll(async () => {
    const { mailbox: accountEmailFrom } = readMailbox('account@example.com')
    provider = await startIdentityProvider({ redirectUri: () => `${service.url}/app/provider` })
    const identityProvider = provider.settings
    service = await startTestService({
      roles: { worker: false },
      expectErrors: true,
      mail: { accountEmailFrom },
      identityProvider,
    })
    person = await signUpOperator(service)
    for (const table of [
      'users',
      'user_sessions',
      'user_links',
      'account_emails',
      'passkeys',
      'user_identities',
      'portal_sessions',
    ])
      await sql`ALTER TABLE ${sql.table(table)} RENAME TO ${sql.id(`lost_${table}`)}`.execute(service.database.db)
  })
  afterAll(async () => {
    await service.stop()
    await provider[Symbol.asyncDispose]()
  })

  test.each(declaring(500))('%s answers 500 and nothing of the inside', async (_, operation) => {
    const isAnswer = operation.id === 'signInWithProvider'
    const request = isAnswer ? await signInRequest(service, provider, 'ada') : bodyOf(operation)
    const answer = await call(service, operation, { ...request, person })
    expect([answer.status, codeOf(answer)]).toEqual([500, 'internal_error'])
    expect(answer.text).not.toMatch(/relation|does not exist|select|insert|\.ts|stack/i)
  })
})

describe('on a service that cannot reach its database', () => {
  let service: TestService
  let person: Person
  let provider: IdentityProvider
  let line: TcpProxy

  beforeAll(async () => {
    provider = await startIdentityProvider({ redirectUri: () => `${service.url}/app/provider` })
    service = await startTestService({
      identityProvider: provider.settings,
      roles: { worker: false },
      mail: { accountEmailFrom: readMailbox('account@example.com').mailbox },
      expectErrors: true,
      async connectionString(direct) {
        const url = new URL(direct)
        line = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
        url.host = `127.0.0.1:${line.port}`
        return url.toString()
      },
    })
    person = await signUpOperator(service)
    await line.cut()
  })
  afterAll(async () => {
    await service.stop()
    await provider[Symbol.asyncDispose]()
    await line[Symbol.asyncDispose]()
  })

  // It asks the provider alone: test/users/identity-provider.test.ts.
  const needingDatabase = declaring(503).filter(([id]) => id !== 'beginProviderSignIn')
  test.each(needingDatabase)('%s answers 503', async (_, operation) => {
    const isAnswer = operation.id === 'signInWithProvider'
    const request = isAnswer ? await signInRequest(service, provider, 'ada') : bodyOf(operation)
    const answer = await call(service, operation, { ...request, person })
    expect([answer.status, codeOf(answer)]).toEqual([503, 'unavailable'])
  })
})
