import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mostCounted } from '../../contract/account.ts'
import { contract } from '../../contract/index.ts'
import { countUpTo } from '../../server/database/bounded-lists.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { deadUrl } from '../support/fixtures.ts'
import { patienceMs } from '../support/patience.ts'
import { signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let time: TestTime

beforeAll(async () => {
  time = createTestTime(new Date('2026-02-27T09:30:10.000Z'))
  service = await startTestService({ time })
})
afterAll(() => service.stop())

const account = (key = service.keys.live) => service.client.as(key).succeed(contract.account.get, {})

test('an account has its plan, its limits and what there is of each', async () => {
  const { client, accountId } = service
  const before = await account()
  expect(before).toMatchObject({ id: accountId, name: 'Ours', plan: 'scale', mode: 'live' })
  expect(before).toMatchObject({ webhooks: { used: 0, limit: 1_000 }, domains: { used: 0, limit: 1_000 } })
  await signUp(service)
  await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  for (const key of [service.keys.live, service.keys.test]) {
    await client.as(key).succeed(contract.webhooks.create, { body: { url: deadUrl, events: ['email.sent'] } })
  }
  await client.succeed(contract.apiKeys.create, { body: { name: 'One more', permissions: ['emails:send'] } })
  const after = await account()
  expect(after).toMatchObject({
    webhooks: { used: 2 },
    domains: { used: 1 },
    apiKeys: { used: before.apiKeys.used + 1, limit: 100 },
    members: { used: before.members.used + 1, limit: null },
    invitations: { used: 0, limit: 200 },
  })
  // Keys have a mode, webhooks are counted over both.
  expect(await account(service.keys.test)).toMatchObject({ mode: 'test', webhooks: { used: 2 }, apiKeys: { used: 1 } })
  expect(await account(service.keys.other)).toMatchObject({
    name: 'Theirs',
    webhooks: { used: 0 },
    domains: { used: 0 },
    members: { used: 0 },
  })
})

test('requests are those of the minute and of the busiest one of the last hour, never above the limit', async () => {
  const { client, keys } = service
  for (const status of [200, 429]) {
    expect((await client.send('GET', '/v1/event-types', { key: keys.limited })).status).toBe(status)
  }
  const { id } = await client.as(keys.other).succeed(contract.account.get, {})
  const start = new Date('2026-02-27T09:01:00.000Z')
  await service.database.db
    .insertInto('rate_limit_windows')
    .values([
      { account_id: id, window_start: start, used: 1_000_700 },
      { account_id: id, window_start: new Date('2026-02-27T08:29:00.000Z'), used: 1_000_000 },
    ])
    .execute()
  const { requests } = await account(keys.other)
  expect(requests).toMatchObject({
    limit: 1_000_000,
    resetAt: '2026-02-27T09:31:00.000Z',
    busiest: { at: start.toISOString(), used: 1_000_000 },
  })
  expect(requests.used).toBeGreaterThan(0)
  expect(requests.used).toBeLessThan(100)
})

test('months are those of UTC and of the mode', async () => {
  const { client, keys } = service
  const send = (key = keys.live) =>
    client.as(key).succeed(contract.emails.send, {
      body: { from: 'a@shop.test', to: 'delivered@simulator.test', subject: 'Hello', text: 'Hello' },
    })
  await service.database.db.updateTable('domains').set({ status: 'verified' }).execute()
  await send()
  await send(keys.test)
  await expect
    .poll(async () => (await account()).months[0], { timeout: patienceMs })
    .toMatchObject({
      since: '2026-02-01T00:00:00.000Z',
      until: '2026-03-01T00:00:00.000Z',
      emails: { sent: 1, delivered: 1 },
    })
  await time.advance(3 * 24 * 3_600_000)
  expect((await account()).months).toMatchObject([
    { since: '2026-03-01T00:00:00.000Z', until: '2026-04-01T00:00:00.000Z', emails: { sent: 0, delivered: 0 } },
    { since: '2026-02-01T00:00:00.000Z', until: '2026-03-01T00:00:00.000Z', emails: { sent: 1, delivered: 1 } },
  ])
})

test('counting reads no more rows than it may tell', async () => {
  const { db } = service.database
  expect(await countUpTo(db, sql`SELECT FROM generate_series(1, 5)`, 3)).toBe(3)
  expect(await countUpTo(db, sql`SELECT FROM generate_series(1, 2)`, mostCounted)).toBe(2)
  expect(await countUpTo(db, sql`SELECT FROM generate_series(1, 0)`, mostCounted)).toBe(0)
})
