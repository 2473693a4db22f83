import { expect, it } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { newId, uuidOf } from '../../server/ids.ts'
import { freshRange } from '../../server/queue/lanes.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { createTestDatabase } from '../support/database.ts'
import { columnsOfJobs } from './columns-of-jobs.ts'

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

  const jobs = await columnsOfJobs(db)
  expect(jobs.get(uuidOf(born))).toEqual(jobs.get(uuidOf(put)))
  expect(jobs.get(uuidOf(born))).toMatchObject({ state: 'active', started_on: 'a time', heartbeat_on: 'a time' })
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
