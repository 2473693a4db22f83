import { sql } from 'kysely'
import { PgBoss } from 'pg-boss'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { firstFlow, noFlow } from '../../server/queue/flow-jobs.ts'
import { priorityOfRetry, priorityOfTurn, secondOf } from '../../server/queue/priority-ranges.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { idOfUuid, newId, uuidOf } from '../../server/shared/ids.ts'
import type { TestDatabase } from '../support/database.ts'
import { startTestQueue } from '../support/queue.ts'
import { columnsOfJobs } from './columns-of-jobs.ts'

const [one, other, third] = [firstFlow + 1, firstFlow + 2, firstFlow + 3] as const

let database: TestDatabase
let queue: Queue
let stop: () => Promise<void>

beforeEach(async () => {
  ;({ database, queue, stop } = await startTestQueue())
})
afterEach(() => stop())

/** Puts so many into a flow, due so many minutes from now each. Returns their ids. */
async function put(flow: number, ...minutes: number[]): Promise<string[]> {
  const now = new Date()
  const jobs = minutes.map((minute) => ({
    deliveryId: newId('delivery', now),
    flow,
    dueAt: minute === 0 ? null : new Date(now.getTime() + minute * 60_000),
  }))
  await inTransaction(database.db, (trx) => queue.flows.put(trx, jobs))
  return jobs.map(({ deliveryId }) => deliveryId)
}

const idsOf = (claims: readonly { deliveryId: string }[]) => claims.map(({ deliveryId }) => deliveryId)

/** pg-boss itself, which does nothing by itself. */
async function startBoss(): Promise<PgBoss & AsyncDisposable> {
  const { connectionString } = database
  const boss = new PgBoss({ connectionString, supervise: false, schedule: false, max: 1 })
  await boss.start()
  return Object.assign(boss, { [Symbol.asyncDispose]: () => boss.stop({ graceful: false }) })
}

test('the jobs of flows are as pg-boss leaves those that it puts in and claims, also those that are claimed from the start', async () => {
  await using boss = await startBoss()
  const ours = newId('delivery', new Date())
  const rows = sql`SELECT ${uuidOf(ours)}::uuid AS id, ${one}::int AS flow, NULL::timestamptz AS due_at, true AS is_claimed`
  await queue.flows.insertion(rows).execute(database.db)
  const theirs = (await boss.send('deliveries', null, { priority: -one })) ?? ''
  await boss.fetch('deliveries')
  const jobs = await columnsOfJobs(database.db)
  expect(jobs.get(uuidOf(ours))).toEqual(jobs.get(theirs))
  expect(jobs.get(theirs)).toMatchObject({ state: 'active' })
})

test('the jobs of flows are as pg-boss leaves those that it puts in and claims', async () => {
  await using boss = await startBoss()
  const [ours = ''] = await put(one, 0)
  const theirs = (await boss.send('deliveries', null, { priority: -one })) ?? ''
  const before = await columnsOfJobs(database.db)
  expect(before.get(uuidOf(ours))).toEqual(before.get(theirs))
  expect(before.get(theirs)).toMatchObject({ state: 'created' })

  expect(await queue.flows.claim([{ flow: one, count: 1 }])).toHaveLength(1)
  await boss.fetch('deliveries')
  const after = await columnsOfJobs(database.db)
  expect(after.get(uuidOf(ours))).toEqual(after.get(theirs))
  expect(after.get(theirs)).toMatchObject({ state: 'active', retry_count: 0 })
})

test('the jobs of flows are due in the order of their times, and created then', async () => {
  const [late, early, future] = await put(one, -1, -2, 5)
  expect(idsOf(await queue.flows.claim([{ flow: one, count: 10 }]))).toEqual([early, late])
  const { rows } = await sql<{ isSame: boolean }>`
      SELECT created_on = start_after AS "isSame" FROM pgboss.job WHERE id = ${uuidOf(future ?? '')}::uuid
    `.execute(database.db)
  expect(rows).toEqual([{ isSame: true }])
})

test('the jobs of flows cannot be put in twice', async () => {
  const [deliveryId = ''] = await put(one, 0)
  const again = [{ deliveryId, flow: other, dueAt: null }]
  await expect(inTransaction(database.db, (trx) => queue.flows.put(trx, again))).rejects.toThrow('duplicate key')
})

test('a claim takes no more of a flow than it wants, the first of each, and nothing of others', async () => {
  const first = await put(one, -5, -4, -3)
  const second = await put(other, -9, -8)
  await put(third, -10)
  const claims = await queue.flows.claim([
    { flow: one, count: 2 },
    { flow: other, count: 5 },
    { flow: firstFlow + 9, count: 5 },
  ])
  expect(idsOf(claims)).toEqual([...second, ...first.slice(0, 2)])
  expect(claims.map(({ flow }) => flow)).toEqual([other, other, one, one])
})

test('a claim passes over what others claim at the same moment', async () => {
  await put(one, ...Array.from({ length: 40 }, () => 0))
  const claims = await Promise.all(Array.from({ length: 8 }, () => queue.flows.claim([{ flow: one, count: 10 }])))
  const ids = claims.flatMap(idsOf)
  expect(new Set(ids).size).toBe(40)
  expect(ids).toHaveLength(40)
})

test('a claim has another name when it is made anew', async () => {
  await put(one, 0)
  const [before] = await queue.flows.claim([{ flow: one, count: 1 }])
  if (before === undefined) return expect.fail('nothing was claimed')
  await queue.giveBack([before])
  const [after] = await queue.flows.claim([{ flow: one, count: 1 }])
  expect(after).toEqual({ ...before, claim: { ...before.claim, retryCount: 1 } })
})

test('the walk finds each flow in which anything waits once, and whether its first is due', async () => {
  await put(other, 5, 6)
  await put(one, 0, 5)
  await put(third, 0)
  await queue.flows.claim([{ flow: third, count: 1 }])
  const unknown = { accountId: null, host: null }
  expect(await queue.flows.heads(0, 10)).toEqual([
    { flow: one, isDue: true, ...unknown },
    { flow: other, isDue: false, ...unknown },
  ])
  expect(await queue.flows.heads(one, 10)).toEqual([{ flow: other, isDue: false, ...unknown }])
  expect(await queue.flows.heads(0, 1)).toHaveLength(1)
  expect(await queue.flows.heads(other, 10)).toEqual([])
})

test('the walk tells whose flow it is, and of which host', async () => {
  const accountId = newId('account', new Date())
  await database.db.insertInto('accounts').values({ id: accountId, name: 'Test', plan: 'scale' }).execute()
  const { number } = await database.db
    .insertInto('delivery_flows')
    .values({ account_id: accountId, url_hash: Buffer.alloc(32), host: 'example.com' })
    .returning('number')
    .executeTakeFirstOrThrow()
  await put(number, 0)
  expect(await queue.flows.heads(0, 10)).toEqual([{ flow: number, isDue: true, accountId, host: 'example.com' }])
})

test('the walk tells which flows are due the longest, and of none whose first is due later', async () => {
  const accountId = newId('account', new Date())
  await database.db.insertInto('accounts').values({ id: accountId, name: 'Test', plan: 'scale' }).execute()
  const flowOf = async (host: string, byte: number) => {
    const row = { account_id: accountId, url_hash: Buffer.alloc(32, byte), host }
    return (await database.db.insertInto('delivery_flows').values(row).returning('number').executeTakeFirstOrThrow())
      .number
  }
  const late = await flowOf('late.example', 1)
  const later = await flowOf('later.example', 2)
  const ahead = await flowOf('ahead.example', 3)
  await put(later, -9, 5)
  await put(late, -3, -1)
  await put(ahead, 5)
  const hosts = async (limit: number) => (await queue.flows.overdue(limit)).map(({ host }) => host)
  expect(await hosts(10)).toEqual(['later.example', 'late.example'])
  expect(await hosts(1)).toEqual(['later.example'])
  const [first, second] = await queue.flows.overdue(10)
  expect(first).toMatchObject({ flow: later, accountId, dueSince: expect.any(Date) })
  expect(first?.dueSince.getTime()).toBeLessThan(second?.dueSince.getTime() ?? 0)
})

/** Gives jobs the priorities they had then. */
async function age(ids: readonly string[], priority: number): Promise<void> {
  await sql`
      UPDATE pgboss.job SET priority = ${priority}, created_on = created_on - interval '1 day'
      WHERE id = ANY(${ids.map(uuidOf)}::uuid[])
    `.execute(database.db)
}

async function adopted(): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`SELECT id FROM pgboss.job WHERE priority = ${-noFlow}`.execute(database.db)
  return new Set(rows.map(({ id }) => idOfUuid('delivery', id)))
}

test('jobs of the version before come into flows page by page, the first of each lane, and those that are not due last', async () => {
  const fresh = await put(one, -3, -2)
  const due = await put(one, -5)
  const later = await put(one, 10, 20)
  const slow = await put(one, -1)
  const [claimed = ''] = await put(other, -1)
  await queue.flows.claim([{ flow: other, count: 1 }])
  await age(fresh, priorityOfTurn(secondOf(new Date())))
  await age(due, priorityOfRetry(new Date(Date.now() - 300_000)))
  await age(later, priorityOfRetry(new Date(Date.now() + 600_000)))
  await age(slow, -7)
  await age([claimed], 2_000_000_000)
  const { db } = database
  expect(await queue.flows.heads(0, 10)).toEqual([])
  expect(await queue.flows.adopt(db, 1)).toEqual({ count: 3, isFull: true })
  expect(await adopted()).toEqual(new Set([fresh[0], ...due, ...slow]))
  expect(await queue.flows.adopt(db, 2)).toEqual({ count: 3, isFull: true })
  expect(await queue.flows.adopt(db, 2)).toEqual({ count: 0, isFull: false })
  // Nothing is known of these deliveries, so whoever claims them puts them away.
  expect(idsOf(await queue.flows.claim([{ flow: noFlow, count: 10 }]))).toEqual([...due, ...fresh, ...slow])
  const { rows } = await sql<{ minutes: number }>`
      SELECT round(extract(epoch FROM created_on - now()) / 60)::int AS minutes FROM pgboss.job
      WHERE priority = ${-noFlow} AND state = 'created' ORDER BY created_on
    `.execute(db)
  expect(rows).toEqual([{ minutes: 10 }, { minutes: 20 }])
})
