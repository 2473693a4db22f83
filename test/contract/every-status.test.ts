import { generateKeyPairSync } from 'node:crypto'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { type KeysOfOnePermission, keysOfOnePermission } from '../support/api-keys.ts'
import { type Answer, createTestClient, type SendOptions, type TestClient } from '../support/client.ts'
import { createTestTime } from '../support/clock.ts'
import {
  createFixtures,
  deadUrl,
  type Fixtures,
  fileOf,
  pathOf,
  tomorrow,
  unknownParameters,
} from '../support/fixtures.ts'
import { type Operation, operationById, keyOperations as operations } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { askingCases } from './asking-cases.ts'
import { actionsWrittenBy, writtenAsWanted } from './audited-operations.ts'
import { campaignCases, deleteUsed, toNobody } from './campaign-cases.ts'
import { forgetProperty } from './forgotten-property.ts'
import { impossibleAlways } from './impossible-always.ts'
import { listsOfAnAccount, makersOfListed } from './lists-of-an-account.ts'

/*
 * Every operation of the published spec is driven into every status it declares. The client judges
 * each answer by the spec; here only the status and the code are looked at.
 */

/** The operations that declare `status`, for a table of tests. */
function declaring(status: number): [id: string, operation: Operation][] {
  return operations.filter(({ answers }) => answers.has(status)).map((operation) => [operation.id, operation])
}

const withBody = operations.flatMap((operation) =>
  operation.body === null ? [] : [[operation.id, operation] as const],
)

function codeOf({ body }: Answer): unknown {
  return Object(body).error?.code
}

/** Calls `operation` with a body that is right, on objects that are not there unless `options` says otherwise. */
function call(
  client: TestClient,
  operation: Operation,
  {
    path = pathOf(operation, unknownParameters(operation)),
    ...options
  }: SendOptions & { path?: string; fixtures: Fixtures },
): Promise<Answer> {
  const json = options.raw === undefined ? (options.json ?? options.fixtures.bodyFor(operation)) : undefined
  const { fixtures, ...rest } = { ...fileOf(operation), ...options }
  const key = fixtures.keyFor(operation)
  return client.send(operation.method, path, {
    ...(key === undefined ? {} : { key }),
    ...rest,
    ...(json === undefined ? {} : { json }),
  })
}

describe('on a service that is well', () => {
  let service: TestService
  let only: KeysOfOnePermission
  let client: TestClient
  let fixtures: Fixtures

  beforeAll(async () => {
    // Time stands still, so that no window of the rate limit ends in the middle of a test.
    service = await startTestService({ roles: { worker: false }, time: createTestTime() })
    only = await keysOfOnePermission(service)
    client = service.client
    fixtures = createFixtures(service)
  })
  afterAll(() => service.stop())

  test.each(operations.map((operation) => [operation.id, operation] as const))('%s succeeds', async (id, operation) => {
    const path = pathOf(operation, await fixtures.parametersFor(operation))
    const [{ status }, actions] = await actionsWrittenBy(service, () => call(client, operation, { fixtures, path }))
    expect([Math.trunc(status / 100), actions]).toEqual([2, writtenAsWanted(id)])
  })

  test.each(declaring(400))('%s refuses an unknown query key with 400', async (_, operation) => {
    const path = `${pathOf(operation, await fixtures.parametersFor(operation))}?unexpected=1`
    const answer = await call(client, operation, { fixtures, path })
    expect([answer.status, codeOf(answer)]).toEqual([400, 'validation_error'])
  })

  test.each(withBody)('%s refuses a body that is not JSON with 400', async (_, operation) => {
    const answer = await call(client, operation, {
      fixtures,
      raw: '{',
      headers: { 'content-type': 'application/json' },
    })
    expect([answer.status, codeOf(answer)]).toEqual([400, 'malformed_json'])
  })

  test.each(withBody)('%s refuses an unknown field with 400', async (_, operation) => {
    const path = pathOf(operation, await fixtures.parametersFor(operation))
    const json = { ...Object(fixtures.bodyFor(operation)), unexpected: 1 }
    const answer = await call(client, operation, { fixtures, path, json })
    expect([answer.status, codeOf(answer)]).toEqual([400, 'validation_error'])
  })

  test.each(declaring(401))('%s refuses a request without a key with 401', async (_, operation) => {
    const answer = await call(client, operation, { fixtures, key: null })
    expect([answer.status, codeOf(answer)]).toEqual([401, 'authentication_error'])
  })

  test.each(declaring(401))('%s refuses a key that may do everything else with 401', async (_, operation) => {
    const others = Object.entries(only).filter(([permission]) => permission !== operation.permission)
    for (const [, key] of others) {
      const answer = await call(client, operation, { fixtures, key })
      expect([answer.status, codeOf(answer)]).toEqual([401, 'authentication_error'])
    }
  })

  test.each(declaring(404))('%s answers 404 for what is not there', async (_, operation) => {
    const answer = await call(client, operation, { fixtures })
    expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
  })

  test.each(declaring(404))('%s answers 404 for an id of another form', async (_, operation) => {
    const malformed = Object.fromEntries(operation.parameters.path.map(({ name }) => [name, "x'; --"]))
    const answer = await call(client, operation, { fixtures, path: pathOf(operation, malformed) })
    expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
  })

  test.each(declaring(404))("%s answers 404 for another account's object", async (_, operation) => {
    const path = pathOf(operation, await fixtures.parametersFor(operation))
    const answer = await call(client, operation, { fixtures, path, key: service.keys.other })
    expect([answer.status, codeOf(answer)]).toEqual([404, 'not_found'])
  })

  test.each(listsOfAnAccount)('%s shows nothing of another account', async (id) => {
    await fixtures.parametersFor(operationById('addContact'))
    for (const get of makersOfListed) {
      await fixtures.parametersFor(operationById(get))
    }
    const answer = await call(client, operationById(id), { fixtures, key: service.keys.other })
    expect(answer).toMatchObject({ status: 200, body: { data: [], nextCursor: null } })
    expect(Object((await call(client, operationById(id), { fixtures })).body).data).not.toEqual([])
  })

  test.each(
    operations
      .filter((operation) => takesIdempotencyKey(operation))
      .map((operation) => [operation.id, operation] as const),
  )('%s refuses an Idempotency-Key that was used for something else with 409', async (id, operation) => {
    const idempotencyKey = `another request than ${id}`
    // With the key of the same mode: those of two modes do not meet.
    const key = fixtures.keyFor(operation) ?? service.keys.live
    await client.as(key).succeed(contract.audiences.create, { body: { name: 'List' } }, { idempotencyKey })
    const path = pathOf(operation, await fixtures.parametersFor(operation))
    const answer = await call(client, operation, { fixtures, path, idempotencyKey })
    expect([answer.status, codeOf(answer)]).toEqual([409, 'idempotency_conflict'])
  })

  test.each(withBody)('%s refuses a body beyond the limit with 413', async (_, operation) => {
    const raw = JSON.stringify({ name: 'x'.repeat(100_000) })
    const answer = await call(client, operation, { fixtures, raw, headers: { 'content-type': 'application/json' } })
    expect([answer.status, codeOf(answer)]).toEqual([413, 'payload_too_large'])
  })

  test.each(withBody)('%s refuses a body of another type with 415', async (_, operation) => {
    const answer = await call(client, operation, { fixtures, raw: 'a=1', headers: { 'content-type': 'text/plain' } })
    expect([answer.status, codeOf(answer)]).toEqual([415, 'unsupported_media_type'])
  })

  test.each(declaring(429))('%s refuses what is beyond the limit with 429', async (_, operation) => {
    const key = service.keys.limited
    await client.send('GET', '/v1/event-types', { key })
    const answer = await call(client, operation, { fixtures, key })
    expect([answer.status, codeOf(answer)]).toEqual([429, 'rate_limit_exceeded'])
    expect(answer.headers).toMatchObject({ 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' })
  })

  describe('conflicts with what is there answer 409', () => {
    const cases: [id: string, provoke: () => Promise<Answer>][] = [
      [
        'createSubscriber',
        async () => {
          const email = fixtures.newEmail()
          await client.succeed(contract.subscribers.create, { body: { email } })
          return client.send('POST', '/v1/subscribers', { json: { email: email.toUpperCase() } })
        },
      ],
      [
        'updateSubscriber',
        async () => {
          const email = fixtures.newEmail()
          await client.succeed(contract.subscribers.create, { body: { email } })
          const path = pathOf(
            operationById('updateSubscriber'),
            await fixtures.parametersFor(operationById('updateSubscriber')),
          )
          return client.send('PATCH', path, { json: { email } })
        },
      ],
      [
        'addContact',
        async () => {
          const path = pathOf(operationById('addContact'), await fixtures.parametersFor(operationById('addContact')))
          const json = { email: fixtures.newEmail() }
          await client.send('POST', path, { json })
          return client.send('POST', path, { json })
        },
      ],
      ['deleteAudience', () => deleteUsed('deleteAudience', client, { fixtures, db: service.database.db })],
      ['deleteSegment', () => deleteUsed('deleteSegment', client, { fixtures, db: service.database.db })],
      ['deleteTopic', () => deleteUsed('deleteTopic', client, { fixtures, db: service.database.db })],
      [
        'createSuppression',
        async () => {
          const address = fixtures.newEmail()
          await client.succeed(contract.suppressions.create, { body: { address } })
          return client.send('POST', '/v1/suppressions', { json: { address: address.toUpperCase() } })
        },
      ],
      [
        'createDomain',
        async () => {
          const { name } = Object(fixtures.bodyFor(operationById('createDomain')))
          await client.succeed(contract.domains.create, { body: { name } })
          return client.send('POST', '/v1/domains', { json: { name: name.toUpperCase() } })
        },
      ],
      [
        'rotateDomainKeys',
        async () => {
          const { id = '' } = await fixtures.parametersFor(operationById('rotateDomainKeys'))
          const { privateKey } = generateKeyPairSync('ed25519')
          const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
          const json = { dkimKeys: { ed25519: { selector: 's1', privateKey: pem } } }
          await client.send('POST', `/v1/domains/${id}/rotate-keys`, { json })
          return client.send('POST', `/v1/domains/${id}/rotate-keys`, { json })
        },
      ],
    ]
    test.each(cases)('conflicts with what is there answer 409: %s', async (_, provoke) => {
      const answer = await provoke()
      expect([answer.status, codeOf(answer)]).toEqual([409, 'conflict'])
    })
  })

  const disableWebhook = (id: string) =>
    client.succeed(contract.webhooks.update, { params: { id }, body: { url: deadUrl, status: 'disabled' } })
  const beginAgain = (id: string) =>
    service.database.db.updateTable('emails').set({ completed_at: null }).where('id', '=', id).execute()
  const cancelEmail = (id: string) =>
    client.as(service.keys.test).succeed(contract.emails.cancel, { params: { id }, body: {} })
  const forgetEvents = (id: string) =>
    service.database.db
      .updateTable('webhooks')
      .set({ events: ['later.type'] })
      .where('id', '=', id)
      .execute()
  type Case = { forbid?: (parameters: Record<string, string>) => Promise<unknown>; json?: object; query?: string }
  const cases: Record<string, Case> = {
    ...impossibleAlways,
    testWebhook: { forbid: ({ id = '' }) => forgetEvents(id), json: {} },
    countSegment: { forbid: (parameters) => forgetProperty(client, parameters) },
    listSegmentContacts: { forbid: (parameters) => forgetProperty(client, parameters) },
    exportSegmentContacts: { forbid: (parameters) => forgetProperty(client, parameters) },
    publishTemplate: {
      forbid: ({ id = '' }) =>
        client.succeed(contract.templates.update, { params: { id }, body: { text: '{{ a | nothing }}' } }),
      json: {},
    },
    resendDelivery: { forbid: ({ id = '' }) => disableWebhook(id), json: {} },
    recoverDeliveries: { forbid: ({ id = '' }) => disableWebhook(id), json: { since: '2026-03-01T00:00:00Z' } },
    updateContact: {
      forbid: ({ subscriberId = '' }) =>
        client.succeed(contract.subscribers.unsubscribe, { params: { id: subscriberId }, body: {} }),
      json: { status: 'active' },
    },
    ...askingCases(() => service.database.db),
    sendEmail: { json: toNobody },
    sendEmailBatch: { json: { emails: [toNobody] } },
    updateEmail: { forbid: ({ id = '' }) => cancelEmail(id), json: { scheduledAt: tomorrow() } },
    cancelEmail: { forbid: ({ id = '' }) => cancelEmail(id), json: {} },
    resendEmail: { forbid: ({ id = '' }) => beginAgain(id), json: {} },
    listCapturedMessages: { query: '?search=%20' },
    ...campaignCases(() => service.database.db),
    listEvents: { query: `?after=${unknownParameters(operationById('getEvent')).id}` },
    streamEvents: { query: `?after=${unknownParameters(operationById('getEvent')).id}` },
  }

  test.each(declaring(422))('what is well-formed but not possible now answers 422: %s', async (id, operation) => {
    const { forbid, json, query = '' } = cases[id] ?? expect.fail(`say in this test how ${id} comes to be impossible`)
    const parameters = await fixtures.parametersFor(operation)
    await forbid?.(parameters)
    const path = pathOf(operation, parameters) + query
    const answer = await call(client, operation, { fixtures, path, ...(json && { json }) })
    expect(answer.status).toBe(422)
  })
})

function takesIdempotencyKey({ parameters }: Operation): boolean {
  return parameters.header.some(({ name }) => name === 'Idempotency-Key')
}

describe('on a service with a fault', () => {
  let service: TestService
  let fixtures: Fixtures

  beforeAll(async () => {
    service = await startTestService({ roles: { worker: false }, time: createTestTime(), expectErrors: true })
    fixtures = createFixtures(service)
    for (const table of [
      'webhooks',
      'portal_sessions',
      'deliveries',
      'events',
      'subscribers',
      'audiences',
      'contacts',
      'contact_properties',
      'segments',
      'account_brands',
      'topics',
      'topic_choices',
      'imports',
      'domains',
      'templates',
      'emails',
      'campaigns',
      'campaign_recipients',
      'suppressions',
      'captured_messages',
      'inbound_messages',
      'audit_log',
      'statistics_deltas',
      'request_logs',
    ]) {
      await sql`ALTER TABLE ${sql.table(table)} RENAME TO ${sql.id(`lost_${table}`)}`.execute(service.database.db)
    }
    // The table itself is needed to know the key of a request.
    await sql`ALTER TABLE api_keys RENAME last_four TO lost`.execute(service.database.db)
  })
  afterAll(() => service.stop())

  /** Needs none of these tables. */
  const untouched = 'listEventTypes'

  test.each(declaring(500).filter(([id]) => id !== untouched))(
    '%s answers 500 and nothing of the inside',
    async (_, operation) => {
      const answer = await call(service.client, operation, { fixtures })
      expect([answer.status, codeOf(answer)]).toEqual([500, 'internal_error'])
      expect(answer.text).not.toMatch(/relation|does not exist|select|insert|\.ts|stack/i)
      expect(service.logged.join('')).toContain(answer.headers['x-request-id'])
    },
  )

  test(`${untouched} answers 500 where requests cannot be counted`, async () => {
    const operation = operationById(untouched)
    await sql`ALTER TABLE rate_limit_windows RENAME TO lost_windows`.execute(service.database.db)
    const answer = await call(service.client, operation, { fixtures, key: service.keys.other })
    expect([answer.status, codeOf(answer)]).toEqual([500, 'internal_error'])
  })
})

describe('on a service that cannot reach its database', () => {
  let service: TestService
  let fixtures: Fixtures
  let line: TcpProxy

  beforeAll(async () => {
    service = await startTestService({
      roles: { worker: false },
      expectErrors: true,
      async connectionString(direct) {
        const url = new URL(direct)
        line = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
        url.host = `127.0.0.1:${line.port}`
        return url.toString()
      },
    })
    fixtures = createFixtures(service)
    await line.cut()
  })
  afterAll(async () => {
    await service.stop()
    await line[Symbol.asyncDispose]()
  })

  test.each(declaring(503))('%s answers 503', async (_, operation) => {
    const answer = await call(service.client, operation, { fixtures })
    expect([answer.status, codeOf(answer)]).toEqual([503, 'unavailable'])
  })

  test('a service answers again as soon as it can reach its database', async () => {
    await line.mend()
    await using client = createTestClient({ url: service.url, key: service.keys.live })
    expect(await client.send('GET', '/v1/webhooks')).toMatchObject({ status: 200 })
  })
})
