import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createTestTime } from '../support/clock.ts'
import { deadUrl } from '../support/fixtures.ts'
import { patienceMs } from '../support/patience.ts'
import { startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

const start = new Date('2026-03-01T09:30:00.000Z')

let service: TestService
let from: string
let domainId: string

beforeAll(async () => {
  service = await startTestService({ time: createTestTime(start), publicUrl: 'https://mail.example.com' })
  const domain = await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  ;({ id: domainId } = domain)
  from = `hello@${domain.name}`
})
afterAll(() => service.stop())

const statistics = (query = {}, key = service.keys.live) =>
  service.client.as(key).succeed(contract.statistics.get, { query: { step: 'hour', ...query } })

async function refusalOf(query: string, key = service.keys.live) {
  const answer = await service.client.send('GET', `/v1/statistics${query}`, { key })
  const { error } = Object(answer.body)
  return {
    status: answer.status,
    code: error?.code,
    path: error?.details?.[0]?.path,
    message: error?.details?.[0]?.message,
  }
}

test('what happened to emails is told at once: of the account, the domain and the tag, and not of another mode', async () => {
  await service.client.succeed(contract.suppressions.create, { body: { address: 'eve@example.org' } })
  const simulated = ['delivered', 'bounced', 'complained'].map((name) => `${name}@simulator.test`)
  for (const to of [...simulated, 'eve@example.org']) {
    await service.client.succeed(contract.emails.send, {
      body: { from, to, subject: 'Hello', text: 'Hello', tags: ['welcome'] },
    })
  }
  const expected = { sent: 2, delivered: 2, bounced: 1, hardBounced: 1, complained: 1, suppressed: 1 }
  await expect
    .poll(async () => (await statistics({ tag: 'welcome' })).totals.emails, { timeout: patienceMs })
    .toMatchObject(expected)
  for (const query of [{}, { domainId }, { step: 'day' }]) {
    expect((await statistics(query)).totals.emails).toMatchObject(expected)
  }
  expect((await statistics({ tag: 'other' })).totals).toMatchObject({ emails: { sent: 0 }, webhooks: null })
  expect((await statistics({}, service.keys.test)).totals.emails).toMatchObject({ sent: 0, suppressed: 0 })
  for (const query of [{}, { tag: 'welcome' }]) {
    expect((await statistics(query, service.keys.other)).totals.emails).toMatchObject({ sent: 0, suppressed: 0 })
  }
})

test('what happened to deliveries is told of the webhook, with its latency', async () => {
  await using receiver = await startReceiver()
  const webhook = await service.client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
  await service.client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })
  const query = { webhookId: webhook.id }
  await expect.poll(async () => (await statistics(query)).totals.webhooks?.attempts, { timeout: patienceMs }).toBe(1)
  const { totals, data } = await statistics(query)
  expect(totals).toMatchObject({
    emails: null,
    webhooks: { failedAttempts: 0, succeededDeliveries: 1, latency: { p50Ms: expect.any(Number) } },
  })
  expect(data.at(-1)).toMatchObject({ start: '2026-03-01T09:00:00.000Z', emails: null, webhooks: { attempts: 1 } })
  const ranking = await service.client.succeed(contract.statistics.ranking, { query: { by: 'webhook' } })
  expect(ranking).toMatchObject({ data: [{ key: webhook.id, emails: null, webhooks: { attempts: 1 } }] })
})

test('what happened is ranked by domain, the busiest first', async () => {
  const day = { mode: 'live', kind: 'domain', day: start, account_id: service.accountId }
  await service.database.db
    .insertInto('statistics_days')
    .values([
      { ...day, key: 'dom_few', sent: '5' } as never,
      { ...day, key: 'dom_most', sent: '900', bounced: '45' } as never,
    ])
    .execute()
  const query = { by: 'domain' as const, limit: 2 }
  const { data } = await service.client.succeed(contract.statistics.ranking, { query })
  expect(data.map(({ key, emails }) => [key, emails?.rates.bounce])).toEqual([
    ['dom_most', 0.05],
    ['dom_few', 0],
  ])
})

test('the time of statistics is the last 24 hours or 30 days, every one of them, unless it is given', async () => {
  const hours = await statistics()
  expect([hours.data.length, hours.since, hours.until]).toEqual([
    24,
    '2026-02-28T10:00:00.000Z',
    '2026-03-01T10:00:00.000Z',
  ])
  const days = await statistics({ step: 'day' })
  expect([days.data.length, days.since, days.until]).toEqual([
    30,
    '2026-01-31T00:00:00.000Z',
    '2026-03-02T00:00:00.000Z',
  ])
  const given = await statistics({ since: '2026-02-28T23:59:00+01:00', until: '2026-03-01T00:00:00Z' })
  expect(given.data.map((bucket) => bucket.start)).toEqual(['2026-02-28T22:00:00.000Z', '2026-02-28T23:00:00.000Z'])
})

test('the time of statistics begins no earlier than figures are kept', async () => {
  const { since, keptSince, data } = await statistics({
    since: '2026-01-20T00:00:00Z',
    until: '2026-02-01T00:00:00Z',
  })
  expect([since, keptSince]).toEqual(['2026-01-29T09:00:00.000Z', '2026-01-29T09:00:00.000Z'])
  expect(data).toHaveLength(63)
  const gone = await statistics({ since: '2026-01-01T00:00:00Z', until: '2026-01-02T00:00:00Z' })
  expect([gone.since, gone.data]).toEqual([gone.until, []])
})

test.each([
  ['?since=2026-03-02T00:00:00Z', 'query.since', 'before'],
  ['?step=hour&since=2026-01-01T00:00:00Z', 'query.since', '31 days'],
  ['?since=2020-01-01T00:00:00Z', 'query.since', '400 days'],
  ['?tag=a&webhookId=wh_01jqz4x7m8e5v9t2k6r3w0y1ab', 'query.webhookId', 'together'],
  ['?domainId=dom_01jqz4x7m8e5v9t2k6r3w0y1ab', 'query.domainId', 'no domain'],
  ['?webhookId=wh_01jqz4x7m8e5v9t2k6r3w0y1ab', 'query.webhookId', 'no webhook'],
])('the time %s is refused with 422, and why', async (query, path, words) => {
  const refusal = await refusalOf(query)
  expect(refusal).toMatchObject({ status: 422, code: 'rule_violation', path })
  expect(refusal.message).toContain(words)
})

test.each(['?step=minute', `?tag=${'x'.repeat(65)}`, '?tag=', '?domainId=x', '?since=yesterday'])(
  'the time %s is refused with 400',
  async (query) => {
    expect(await refusalOf(query)).toMatchObject({ status: 400, code: 'validation_error' })
  },
)

test('statistics of what belongs to another account or mode are refused', async () => {
  const body = { url: deadUrl, events: ['subscriber.added' as const] }
  const { id } = await service.client.succeed(contract.webhooks.create, { body })
  for (const key of [service.keys.other, service.keys.test]) {
    expect(await refusalOf(`?webhookId=${id}`, key)).toMatchObject({ status: 422, path: 'query.webhookId' })
  }
  expect(await refusalOf(`?domainId=${domainId}`, service.keys.other)).toMatchObject({ status: 422 })
})

test('a thousand webhooks and domains make no request read more than its own rows', async () => {
  const { db } = service.database
  await sql`
    INSERT INTO statistics_hours (account_id, mode, kind, key, hour, sent, attempts)
    SELECT ${service.accountId}, 'live', kind, kind || number, hour, 1, 1
    FROM unnest(ARRAY['domain', 'webhook']) kind, generate_series(1, 1_000) number,
      generate_series('2026-02-28 10:00Z', '2026-03-01 09:00Z', interval '1 hour') hour
  `.execute(db)
  const { rows } = await sql<{ 'QUERY PLAN': [{ Plan: Node }] }>`
    EXPLAIN (ANALYZE, FORMAT json)
    SELECT sum(sent) FROM statistics_hours
    WHERE account_id = ${service.accountId} AND mode = 'live' AND kind = 'webhook' AND key = 'webhook500'
      AND hour >= '2026-02-28 10:00Z' AND hour < '2026-03-01 10:00Z'
  `.execute(db)
  const scan = rows[0]?.['QUERY PLAN'][0].Plan.Plans?.[0]
  expect(scan).toMatchObject({ 'Actual Rows': 24 })
  expect(scan?.['Rows Removed by Filter'] ?? 0).toBe(0)
})

type Node = { 'Actual Rows': number; 'Rows Removed by Filter'?: number; Plans?: Node[] }
