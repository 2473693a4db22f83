import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Db } from '../../server/database/connection.ts'
import { setCaller } from '../../server/http/caller.ts'
import { createEndpoint } from '../../server/http/idempotency.ts'
import { createRateLimiter, leaseSize, limitRate } from '../../server/http/rate-limit.ts'
import { deleteOldWindows, leaseRequests } from '../../server/http/rate-limit-windows.ts'
import { secretBox } from '../../server/secrets/secret-box.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startApi } from './gates.ts'

const start = Date.parse('2026-01-01T00:00:15.500Z')
const clock = { at: start, now: () => new Date(clock.at) }
const limits = { free: 10, pro: 1_000 }
let database: TestDatabase
let db: Db
let accountId: string

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
})
afterAll(() => database.drop())
beforeEach(() => {
  clock.at = start
  accountId = newId('account', new Date())
})

/** A limiter that counts its leases. */
function counted(plan = 'pro') {
  const statements: unknown[] = []
  const watched = db.withPlugin({
    transformQuery({ node }) {
      statements.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const limiter = createRateLimiter({ db: watched, clock, limits })
  return { take: () => limiter.take({ accountId, plan }), leases: () => statements.length }
}

test('one process admits as many requests as the plan allows, and tells what is left', async () => {
  const { take } = counted('free')
  for (let sent = 1; sent <= 10; sent++) {
    expect(await take()).toEqual({
      allowed: true,
      limit: 10,
      remaining: 10 - sent,
      resetAt: Date.parse('2026-01-01T00:01:00Z'),
    })
  }
  expect(await take()).toMatchObject({ allowed: false, limit: 10, remaining: 0 })
})

test('one process refuses without asking the database again', async () => {
  const { take, leases } = counted('free')
  for (let sent = 0; sent < 10; sent++) await take()
  const before = leases()
  for (let sent = 0; sent < 10; sent++) expect(await take()).toMatchObject({ allowed: false })
  expect(leases()).toBe(before)
})

test('one process begins anew with each minute of the clock', async () => {
  const { take } = counted('free')
  for (let sent = 0; sent < 11; sent++) await take()
  clock.at = Date.parse('2026-01-01T00:00:59.999Z')
  expect(await take()).toMatchObject({ allowed: false })
  clock.at += 1
  expect(await take()).toEqual({
    allowed: true,
    limit: 10,
    remaining: 9,
    resetAt: Date.parse('2026-01-01T00:02:00Z'),
  })
})

test('one process takes nothing leased in one minute into the next', async () => {
  const { take } = counted()
  for (let sent = 0; sent < 100; sent++) await take()
  clock.at += 60_000
  const verdicts = await Promise.all(Array.from({ length: 1_100 }, take))
  expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(1_000)
})

test('one process gives a plan nobody set the smallest limit', async () => {
  expect(await counted('gone').take()).toMatchObject({ limit: 10 })
  expect(await counted('toString').take()).toMatchObject({ limit: 10 })
})

test('one process keeps accounts apart', async () => {
  const limiter = createRateLimiter({ db, clock, limits })
  const other = newId('account', new Date())
  for (let sent = 0; sent < 11; sent++) await limiter.take({ accountId, plan: 'free' })
  expect(await limiter.take({ accountId, plan: 'free' })).toMatchObject({ allowed: false })
  expect(await limiter.take({ accountId: other, plan: 'free' })).toMatchObject({ allowed: true, remaining: 9 })
})

test('one process obeys another plan at once', async () => {
  const limiter = createRateLimiter({ db, clock, limits })
  for (let sent = 0; sent < 10; sent++) await limiter.take({ accountId, plan: 'free' })
  expect(await limiter.take({ accountId, plan: 'free' })).toMatchObject({ allowed: false })
  expect(await limiter.take({ accountId, plan: 'pro' })).toMatchObject({ allowed: true, remaining: 989 })
  expect(await limiter.take({ accountId, plan: 'free' })).toMatchObject({ allowed: false })
})

test('one process asks the database for many requests at a time', async () => {
  const { take, leases } = counted()
  for (let sent = 0; sent < 500; sent++) await take()
  expect(leases()).toBeLessThan(30)
})

test('one process asks twice for all requests that come at once, and once ahead for those to come', async () => {
  const { take, leases } = counted()
  await Promise.all(Array.from({ length: 200 }, take))
  expect(leases()).toBe(3)
})

test('one process lets no request wait for the database once they come fast', async () => {
  const { take, leases } = counted()
  for (let sent = 0; sent < 200; sent++) await take()
  const counter = await db.startTransaction().execute()
  await counter.selectFrom('rate_limit_windows').selectAll().where('account_id', '=', accountId).forUpdate().execute()
  const before = leases()
  while (leases() === before) expect(await take()).toMatchObject({ allowed: true })
  for (let sent = 0; sent < 8; sent++) expect(await take()).toMatchObject({ allowed: true })
  await counter.commit().execute()
})

test('one process tells a failure of the database to all who wait, and asks again for those who come later', async () => {
  let isDown = true
  const limiter = createRateLimiter({
    db: db.withPlugin({
      transformQuery({ node }) {
        if (isDown) throw new Error('the database is down')
        return node
      },
      transformResult: async ({ result }) => result,
    }),
    clock,
    limits,
  })
  const take = () => limiter.take({ accountId, plan: 'free' })
  const early = await Promise.allSettled([take(), take()])
  expect(early.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  isDown = false
  expect(await take()).toMatchObject({ allowed: true, remaining: 9 })
})

test.each([
  ['a small limit', 'free', 4, 30],
  ['a large limit', 'pro', 4, 1_200],
])('several processes admit exactly the limit together: %s', async (_, plan, processes, each) => {
  const limiters = Array.from({ length: processes }, () => createRateLimiter({ db, clock, limits }))
  const takes = limiters.flatMap((limiter) => Array.from({ length: each }, () => limiter.take({ accountId, plan })))
  const verdicts = await Promise.all(takes)
  expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(limits[plan as keyof typeof limits])
  for (const { remaining } of verdicts) expect(remaining).toBeGreaterThanOrEqual(0)
})

test('several processes one after the other also admit exactly the limit', async () => {
  const limiters = Array.from({ length: 3 }, () => createRateLimiter({ db, clock, limits }))
  let admitted = 0
  for (let turn = 0; turn < 500; turn++) {
    for (const limiter of limiters) if ((await limiter.take({ accountId, plan: 'pro' })).allowed) admitted += 1
  }
  expect(admitted).toBe(1_000)
})

test('several processes that come late see what the others have used', async () => {
  const early = createRateLimiter({ db, clock, limits })
  for (let sent = 0; sent < 9; sent++) await early.take({ accountId, plan: 'free' })
  const late = createRateLimiter({ db, clock, limits })
  expect(await late.take({ accountId, plan: 'free' })).toMatchObject({ allowed: true, remaining: 0 })
  expect(await early.take({ accountId, plan: 'free' })).toMatchObject({ allowed: false })
})

test('a lease is cut at the limit, and nothing comes after it', async () => {
  const lease = (wanted: number) => leaseRequests(db, { accountId, start: new Date(0), wanted, limit: 10 })
  expect(await lease(8)).toEqual({ granted: 8, left: 2 })
  expect(await lease(5)).toEqual({ granted: 2, left: 0 })
  expect(await lease(1)).toEqual({ granted: 0, left: 0 })
  accountId = newId('account', new Date())
  expect(await lease(50)).toEqual({ granted: 10, left: 0 })
})

test.each([
  ['the first of a window', { waiting: 1, leased: 0, left: 30_000 }, 1],
  ['twice the last while there is plenty', { waiting: 1, leased: 8, left: 30_000 }, 16],
  ['no more than one statement is worth', { waiting: 1, leased: 1_024, left: 30_000 }, 1_024],
  ['a small part of what is left', { waiting: 1, leased: 256, left: 320 }, 20],
  ['one near the limit', { waiting: 1, leased: 256, left: 15 }, 1],
  ['what all need who wait', { waiting: 300, leased: 1, left: 30_000 }, 300],
])('the size of a lease: %s', (_, share, size) => {
  expect(leaseSize(share)).toBe(size)
})

test('every answer behind the gate tells the limit, and the refusal when to come again', async () => {
  const actor = { type: 'key', id: 'key', name: 'A key' } as const
  const limits = { expiresAt: null, allowedAddresses: [] }
  const caller = { actor, accountId, plan: 'free', mode: 'live', permissions: [], limits } as const
  await using api = await startApi({
    gates: [
      (req, _res, next) => {
        setCaller(req, caller)
        next()
      },
      limitRate({ limiter: createRateLimiter({ db, clock, limits: { free: 3 } }), clock }),
    ],
    endpoint: createEndpoint({ db, clock, secretBox: secretBox(Buffer.alloc(32)) }),
    work: async () => 1,
  })
  const reset = String(Date.parse('2026-01-01T00:01:00Z') / 1000)
  const sent = [
    await api.send('GET', '/read'),
    await api.send('POST', '/plain', { body: '{' }),
    await api.send('POST', '/plain', { body: '{"name":"x"}' }),
    await api.send('GET', '/read'),
  ]
  expect(
    sent.map(({ status, headers }) => [
      status,
      headers.get('x-ratelimit-limit'),
      headers.get('x-ratelimit-remaining'),
      headers.get('x-ratelimit-reset'),
    ]),
  ).toEqual([
    [200, '3', '2', reset],
    [400, '3', '1', reset],
    [200, '3', '0', reset],
    [429, '3', '0', reset],
  ])
  expect(sent[3]?.body.error).toMatchObject({
    code: 'rate_limit_exceeded',
    message: 'The account has sent the 3 requests that its plan allows in 60 seconds. Try again in 45 seconds.',
    retryAfterSeconds: 45,
  })
})

test('counts of windows are deleted an hour after them', async () => {
  const ago = (hours: number) => new Date(clock.at - hours * 3_600_000)
  const windows = [2, 0.5].map((hours) => ({ account_id: accountId, window_start: ago(hours), used: 1 }))
  await db.insertInto('rate_limit_windows').values(windows).execute()
  await deleteOldWindows(db, clock.now())
  const left = await db
    .selectFrom('rate_limit_windows')
    .select('window_start')
    .where('account_id', '=', accountId)
    .execute()
  expect(left).toEqual([{ window_start: ago(0.5) }])
})
