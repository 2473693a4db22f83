import { sql } from 'kysely'
import { PgBoss } from 'pg-boss'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import type { TestDatabase } from '../support/database.ts'
import { claimFlows, someFlow } from '../support/flows.ts'
import { keepAsBefore } from '../support/kept.ts'
import { startTestQueue } from '../support/queue.ts'

const deliveryIds = Array.from({ length: 3 }, () => newId('delivery', new Date()))
const [one, other] = deliveryIds as [string, string]

let database: TestDatabase
let queue: Queue
let stop: () => Promise<void>

beforeEach(async () => {
  ;({ database, queue, stop } = await startTestQueue())
})
afterEach(() => stop())

const keep = () => keepAsBefore(database.db, deliveryIds)

/** pg-boss itself, which does nothing by itself. */
async function startBoss(): Promise<PgBoss & AsyncDisposable> {
  const boss = new PgBoss({ connectionString: database.connectionString, supervise: false, schedule: false, max: 1 })
  await boss.start()
  return Object.assign(boss, { [Symbol.asyncDispose]: () => boss.stop({ graceful: false }) })
}

test('deliveries that a process of the version before keeps are in hand, and not missing, until their job ends', async () => {
  const keptBy = await keep()
  const stranger = newId('delivery', new Date())
  expect(await queue.claimed(database.db, [one, stranger])).toEqual(new Set([one]))
  expect(await queue.missing(database.db, [...deliveryIds, stranger])).toEqual([stranger])
  expect(await queue.withoutJob(database.db, [one, stranger])).toEqual([one, stranger])
  await sql`DELETE FROM pgboss.job WHERE id = ${keptBy}`.execute(database.db)
  expect(await queue.claimed(database.db, [one])).toEqual(new Set())
  expect(await queue.missing(database.db, deliveryIds)).toEqual(deliveryIds)
})

test('deliveries that a process of the version before keeps are not in hand any more when they have jobs of their own', async () => {
  await keep()
  const waiting = { deliveryId: one, flow: someFlow, dueAt: null }
  await inTransaction(database.db, (trx) => queue.flows.put(trx, [waiting]))
  expect(await queue.claimed(database.db, [one, other])).toEqual(new Set([other]))
  await claimFlows(queue, 1)
  expect(await queue.claimed(database.db, [one, other])).toEqual(new Set([one, other]))
})

test('deliveries that a process of the version before keeps are missing when their process is gone, also while somebody looks after them', async () => {
  const keptBy = await keep()
  await using boss = await startBoss()
  // As pg-boss does with a job whose process is silent.
  await boss.fail('kept', keptBy)
  expect(await queue.missing(database.db, deliveryIds)).toEqual(deliveryIds)
  expect(await boss.fetch('kept')).toHaveLength(1)
  expect(await queue.missing(database.db, deliveryIds)).toEqual(deliveryIds)
})
