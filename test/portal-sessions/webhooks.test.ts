import {
  CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
} from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { Database } from '../../server/database/schema.ts'
import { hasCustomerWebhooks, selectWebhooks } from '../../server/webhooks/queries.ts'
import { deadUrl } from '../support/fixtures.ts'
import { type Customer, openPortal } from '../support/portal.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false }, webhooks: { maxPerCustomer: 3 } })
})
afterAll(() => service.stop())

const events = ['contact.created' as const]

async function create(customer: Customer, more: object = {}) {
  return customer.send('POST', '/v1/webhooks', { json: { url: deadUrl, events, ...more } })
}

async function made(customer: Customer, more: object = {}): Promise<{ id: string; secret: string }> {
  const { status, body } = await create(customer, more)
  expect(status).toBe(201)
  return Object(body)
}

const stored = (id: string) =>
  service.database.db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

test('a webhook that a customer makes is theirs, whatever the request says', async () => {
  const customer = await openPortal(service, { customer: 'maker' })
  const { id, secret } = await made(customer)
  expect(secret).toMatch(/^whsec_/)
  expect((await stored(id)).metadata).toEqual({ customer: 'maker' })
  for (const metadata of [{ customer: 'other' }, { plan: 'gold' }, {}]) {
    expect((await create(customer, { metadata })).status).toBe(422)
    expect((await customer.send('PATCH', `/v1/webhooks/${id}`, { json: { metadata } })).status).toBe(422)
  }
  expect((await stored(id)).metadata).toEqual({ customer: 'maker' })
})

test('a webhook that a customer makes is refused beyond the limit of the customer, also when two are made at once; the account can make more', async () => {
  const customer = await openPortal(service, { customer: 'collector' })
  const answers = await Promise.all(Array.from({ length: 5 }, () => create(customer)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 409, 409])
  expect(Object(answers.find(({ status }) => status === 409)?.body).error.message).toContain('limit of 3 webhooks')
  const body = { url: deadUrl, events, metadata: { customer: 'collector' } }
  await service.client.succeed(contract.webhooks.create, { body })
  expect((await create(await openPortal(service, { customer: 'another' }))).status).toBe(201)
})

test('a webhook that a customer makes stands in the audit log under the name of the customer', async () => {
  const customer = await openPortal(service, { customer: 'audited' })
  await made(customer)
  const { data } = await service.client.succeed(contract.auditLog.list, { query: { limit: 1 } })
  expect(data[0]).toMatchObject({
    action: 'webhook.created',
    actor: { type: 'portal_session', id: customer.sessionId, name: 'audited' },
  })
})

test('a webhook that a customer makes does not tell what the account keeps with it, nor what others do at its URL', async () => {
  const metadata = { customer: 'shy', margin: '40 %' }
  const { id } = await service.client.succeed(contract.webhooks.create, { body: { url: deadUrl, events, metadata } })
  const { flow } = await stored(id)
  await sql`
      INSERT INTO flow_states (flow, process, max_in_flight, in_flight, updated_at)
      VALUES (${flow}, gen_random_uuid(), 7, 5, now())
    `.execute(service.database.db)
  const customer = await openPortal(service, { customer: 'shy' })
  const { body } = await customer.send('GET', `/v1/webhooks/${id}`)
  expect(body).toMatchObject({ metadata: { customer: 'shy' }, health: { limit: null, inFlight: 0 } })
  const own = await service.client.succeed(contract.webhooks.get, { params: { id } })
  expect(own).toMatchObject({ metadata, health: { limit: 7, inFlight: 5 } })
  const updated = await customer.send('PATCH', `/v1/webhooks/${id}`, { json: { description: 'Mine' } })
  expect(Object(updated.body).metadata).toEqual({ customer: 'shy' })
  expect((await stored(id)).metadata).toEqual(metadata)
})

test('a session with some event types subscribes to these alone, and keeps what a webhook has', async () => {
  const customer = await openPortal(service, { customer: 'chooser', eventTypes: ['email.sent', 'email.bounced'] })
  expect((await create(customer, { events: ['email.sent', 'contact.created'] })).status).toBe(422)
  const { id } = await made(customer, { events: ['email.sent'] })
  const change = async (types: string[]) =>
    (await customer.send('PATCH', `/v1/webhooks/${id}`, { json: { events: types } })).status
  expect(await change(['email.bounced'])).toBe(200)
  expect(await change(['contact.created'])).toBe(422)
  const body = { events: ['contact.created', 'email.sent'] as const }
  await service.client.succeed(contract.webhooks.update, { params: { id }, body: { events: [...body.events] } })
  expect(await change(['contact.created', 'email.bounced'])).toBe(200)
  expect(await change(['contact.created', 'contact.deleted'])).toBe(422)
  const sample = (type: string) => customer.send('POST', `/v1/webhooks/${id}/test`, { json: { type } })
  expect((await sample('email.sent')).status).toBe(200)
  expect((await sample('domain.created')).status).toBe(422)
})

test('an Idempotency-Key of the account or of another customer gives a customer none of their answers', async () => {
  const json = { url: deadUrl, events }
  const idempotencyKey = 'the same for all'
  const [ada, grace] = [
    await openPortal(service, { customer: 'ada' }),
    await openPortal(service, { customer: 'grace' }),
  ]
  const sent = [
    await service.client.send('POST', '/v1/webhooks', { json, idempotencyKey }),
    await ada.send('POST', '/v1/webhooks', { json, idempotencyKey }),
    await grace.send('POST', '/v1/webhooks', { json, idempotencyKey }),
    await ada.send('POST', '/v1/webhooks', { json, idempotencyKey }),
  ]
  const ids = sent.map(({ body }) => Object(body).id)
  expect(new Set(ids.slice(0, 3)).size).toBe(3)
  expect(ids[3]).toBe(ids[1])
})

const acts: [string, (id: string) => [string, string, object?]][] = [
  ['a change', (id) => ['PATCH', `/v1/webhooks/${id}`, { description: 'Mine' }]],
  ['a deletion', (id) => ['DELETE', `/v1/webhooks/${id}`]],
  ['a rotation', (id) => ['POST', `/v1/webhooks/${id}/rotate-secret`, {}]],
  ['a recovery', (id) => ['POST', `/v1/webhooks/${id}/recover`, { since: '2026-03-01T00:00:00Z' }]],
]
test.each(acts)(
  'a webhook that becomes that of another customer is not there for %s that waited for that',
  async (_, act) => {
    const customer = await openPortal(service, { customer: 'former' })
    const { id } = await service.client.succeed(contract.webhooks.create, {
      body: { url: deadUrl, events, metadata: { customer: 'former' } },
    })
    const before = await stored(id)
    const { db } = service.database
    const [method, path, json] = act(id)
    let waiting: ReturnType<Customer['send']> | undefined
    await db.transaction().execute(async (trx) => {
      await trx.updateTable('webhooks').set({ metadata: '{"customer":"next"}' }).where('id', '=', id).execute()
      waiting = customer.send(method, path, json === undefined ? {} : { json })
      // Until the request stands at the lock.
      const isWaiting = async () =>
        (
          await sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(
            db,
          )
        ).rows.length
      await expect.poll(isWaiting).toBeGreaterThan(0)
    })
    expect((await waiting)?.status).toBe(404)
    expect(await stored(id)).toEqual({ ...before, metadata: { customer: 'next' } })
    const { rows } = await sql`SELECT FROM webhook_recoveries WHERE webhook_id = ${id}`.execute(db)
    expect(rows).toEqual([])
  },
)

describe('tests of webhooks', () => {
  test('two of a customer are in flight at once, and leave room for others', async () => {
    await using receiver = await startReceiver()
    const release = Promise.withResolvers<void>()
    receiver.respond((exchange) => void release.promise.then(() => answer(200)(exchange)))
    const [ada, grace] = [
      await openPortal(service, { customer: 'tester' }),
      await openPortal(service, { customer: 'other' }),
    ]
    const { id } = await made(ada, { url: receiver.url })
    const { id: others } = await made(grace, { url: receiver.url })
    const running = [1, 2].map(() => ada.send('POST', `/v1/webhooks/${id}/test`, { json: {} }))
    await receiver.received(2)
    expect((await ada.send('POST', `/v1/webhooks/${id}/test`, { json: {} })).status).toBe(429)
    running.push(grace.send('POST', `/v1/webhooks/${others}/test`, { json: {} }))
    await receiver.received(3)
    release.resolve()
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200, 200])
    const { body } = await ada.send('GET', `/v1/webhooks/${id}/deliveries`)
    const [delivery] = Object(body).data
    const event = await ada.send('GET', `/v1/webhooks/${id}/deliveries/${delivery.id}/event`)
    expect(event.body).toMatchObject({ id: delivery.eventId, type: 'contact.created', mode: 'live' })
  })
})

test('the webhooks of a customer are found by an index, in lists and for the limit', async () => {
  const { db } = service.database
  await sql`
    INSERT INTO webhooks (id, account_id, mode, url, events, metadata, secret)
    SELECT 'wh_' || lpad(n::text, 26, '0'), ${service.accountId}, 'live', 'http://127.0.0.1:9/', '{contact.created}',
      jsonb_build_object('customer', 'c' || n % 5000), ''
    FROM generate_series(1, 10000) n
  `.execute(db)
  await sql`ANALYZE webhooks`.execute(db)
  const queries: CompiledQuery[] = []
  const noting = new Kysely<Database>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (of) => new PostgresIntrospector(of),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => void queries.push(query),
  })
  const scope = { accountId: service.accountId, mode: 'live' } as const
  await selectWebhooks(noting, { ...scope, portal: { customer: 'c7', eventTypes: null } }, { limit: 21 })
  await selectWebhooks(noting, scope, { limit: 21, metadata: { customer: 'c7', plan: 'gold' } })
  await hasCustomerWebhooks(noting, scope, { customer: 'c7', count: 20 })
  expect(queries).toHaveLength(3)
  for (const { sql: text, parameters } of queries) {
    const explain = CompiledQuery.raw(`EXPLAIN ${text}`, [...parameters])
    const { rows } = await db.executeQuery<{ 'QUERY PLAN': string }>(explain)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('webhooks_by_customer')
    expect(plan).not.toMatch(/Sort|Seq Scan/)
  }
})
