import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { type Db, inTransaction } from '../../server/database/connection.ts'
import { type ClaimedDelivery, type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId, uuidOf } from '../../server/shared/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { claimFlows, someFlow } from '../support/flows.ts'
import { columnsOfJobs } from './columns-of-jobs.ts'

const onError = (error: Error) => {
  throw error
}

const otherFlow = someFlow + 1
const [one, other] = [newId('delivery', new Date()), newId('delivery', new Date())] as const

/** Two deliveries, claimed. */
async function claimTwo(stack: AsyncDisposableStack) {
  const { db, connectionString } = stack.adopt(await createTestDatabase(), (database) => database.drop())
  const queue: Queue = await startQueue({ connectionString, works: false, onError })
  stack.defer(() => queue.stop())
  const waiting = [one, other].map((deliveryId) => ({ deliveryId, flow: someFlow, dueAt: null }))
  await inTransaction(db, (trx) => queue.flows.put(trx, waiting))
  const claims = await claimFlows(queue, 10)
  const claimOf = (id: string) => claims.find(({ deliveryId }) => deliveryId === id) as ClaimedDelivery
  const handBack = async ({ claim }: ClaimedDelivery, flow: number) => {
    const rows = sql`SELECT ${claim.id}::uuid AS job_id, ${claim.retryCount}::int AS retry_count, ${flow}::int AS flow`
    await queue.handingBack([claim.id], rows).execute(db)
  }
  return { db, queue, claimOf, handBack }
}

test('handing a delivery back leaves its job as pg-boss leaves one whose claim it ends', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, queue, claimOf, handBack } = await claimTwo(stack)
  await queue.giveBack([claimOf(one)])
  await handBack(claimOf(other), someFlow)
  const jobs = await columnsOfJobs(db)
  expect(jobs.get(uuidOf(other))).toEqual(jobs.get(uuidOf(one)))
  expect(jobs.get(uuidOf(other))).toMatchObject({ state: 'retry', heartbeat_on: null })
})

test('handing a delivery back puts it into another flow at once, under another claim, and passes over what was claimed anew', async () => {
  await using stack = new AsyncDisposableStack()
  const { queue, claimOf, handBack } = await claimTwo(stack)
  await handBack(claimOf(one), otherFlow)
  expect(await queue.flows.claim([{ flow: someFlow, count: 10 }])).toEqual([])
  const [again] = await queue.flows.claim([{ flow: otherFlow, count: 10 }])
  expect(again).toEqual({ deliveryId: one, flow: otherFlow, claim: { ...claimOf(one).claim, retryCount: 1 } })
  await handBack(claimOf(one), someFlow)
  expect(await claimFlows(queue, 10)).toEqual([])
})

test('handing deliveries back reads no more than these, whatever waits and however little is known of that', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, queue } = await claimTwo(stack)
  await putMany(db, queue)
  const claims = (await queue.flows.claim([{ flow: someFlow, count: 500 }])).map(({ claim }) => claim)
  const ids = claims.map(({ id }) => id)
  const rows = sql`
    SELECT job_id, retry_count, ${otherFlow}::int AS flow
    FROM unnest(${ids}::uuid[], ${claims.map(({ retryCount }) => retryCount)}::int[]) AS i (job_id, retry_count)
  `
  const explained = await sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>`
    EXPLAIN (ANALYZE, FORMAT JSON) ${queue.handingBack(ids, rows)}
  `.execute(db)
  expect(await queue.flows.claim([{ flow: otherFlow, count: 1_000 }])).toHaveLength(500)
  expect(rowsPassedOver(explained.rows[0]?.['QUERY PLAN'][0].Plan)).toBeLessThan(500)
})

type Plan = { 'Rows Removed by Filter'?: number; 'Rows Removed by Join Filter'?: number; Plans?: Plan[] }

/** By all parts of a plan. */
function rowsPassedOver(plan: Plan | undefined): number {
  const { 'Rows Removed by Filter': byFilter = 0, 'Rows Removed by Join Filter': byJoin = 0, Plans = [] } = plan ?? {}
  return byFilter + byJoin + Plans.reduce((sum, part) => sum + rowsPassedOver(part), 0)
}

/** Has many wait of which PostgreSQL does not know. */
async function putMany(db: Db, queue: Queue): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'pgboss.job'::regclass
  `.execute(db)
  for (const { name } of rows) await sql`ALTER TABLE ${sql.raw(name)} SET (autovacuum_enabled = off)`.execute(db)
  const at = new Date()
  const many = Array.from({ length: 10_000 }, () => ({
    deliveryId: newId('delivery', at),
    flow: someFlow,
    dueAt: null,
  }))
  await inTransaction(db, (trx) => queue.flows.put(trx, many))
}
