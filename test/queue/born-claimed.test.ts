import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { newId, uuidOf } from '../../server/ids.ts'
import { freshRange } from '../../server/queue/lanes.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { createTestDatabase } from '../support/database.ts'

const onError = (error: Error) => {
  throw error
}

it('leaves the job of a delivery that is claimed from the start as pg-boss leaves one it has claimed', async () => {
  await using stack = new AsyncDisposableStack()
  const database = stack.adopt(await createTestDatabase(), (one) => one.drop())
  const { db, connectionString } = database
  const queue: Queue = await startQueue({ connectionString, works: false, onError })
  stack.defer(() => queue.stop())
  const [put, born] = [newId('delivery', new Date()), newId('delivery', new Date())] as const
  const priority = freshRange.max
  await inTransaction(db, (trx) => queue.put(trx, [{ deliveryId: put, priority, dueAt: null }]))
  const [claimed] = await queue.claim(freshRange, 10)
  const claims = await inTransaction(db, (trx) => queue.putClaimed(trx, [{ deliveryId: born, priority }]))
  expect(claims).toEqual([{ deliveryId: born, claim: { ...claimed?.claim, id: uuidOf(born) } }])

  const { rows } = await sql<{ id: string; job: Record<string, unknown>; untilKept: number }>`
    SELECT id, to_jsonb(job) AS job, EXTRACT(EPOCH FROM keep_until - start_after)::int AS "untilKept" FROM pgboss.job
  `.execute(db)
  const [first, second] = [put, born].map((id) => {
    const row = rows.find((one) => one.id === uuidOf(id))
    if (row === undefined) throw new Error('a delivery has no job')
    const { id: _, ...job } = row.job
    const isTime = (value: unknown) => typeof value === 'string' && !Number.isNaN(Date.parse(value))
    const columns = Object.entries(job).map(([name, value]) => [name, isTime(value) ? 'a time' : value])
    return { untilKept: row.untilKept, columns: Object.fromEntries(columns) }
  })
  expect(second).toEqual(first)
  expect(second?.columns).toMatchObject({ state: 'active', started_on: 'a time', heartbeat_on: 'a time' })
})

it('fails the transaction that puts in a delivery which is in already', async () => {
  await using stack = new AsyncDisposableStack()
  const { db, connectionString } = stack.adopt(await createTestDatabase(), (one) => one.drop())
  const queue = await startQueue({ connectionString, works: false, onError })
  stack.defer(() => queue.stop())
  const deliveryId = newId('delivery', new Date())
  const putIn = () => inTransaction(db, (trx) => queue.putClaimed(trx, [{ deliveryId, priority: freshRange.max }]))
  await putIn()
  await expect(putIn()).rejects.toThrow('duplicate key')
})
