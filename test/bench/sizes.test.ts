import { afterAll, beforeAll, expect, test } from 'vitest'
import { sizesOf } from '../../scripts/bench/sizes.ts'
import { installQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await installQueue(database.connectionString, () => undefined)
})

afterAll(() => database.drop())

test('each table has one size and one of its indexes, and the jobs of all queues together', async () => {
  const names = (await sizesOf(database.db)).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toEqual(expect.arrayContaining(['events', 'events, indexes', 'jobs', 'jobs, indexes']))
})

test('people may grow for ever, with their indexes; what retention is for may not', async () => {
  const sizes = await sizesOf(database.db)
  const keptOf = (table: string) => sizes.filter(({ name }) => name.split(',')[0] === table).map(({ isKept }) => isKept)
  for (const table of ['subscribers', 'contacts']) expect(keptOf(table)).toEqual([true, true])
  for (const table of ['events', 'deliveries', 'attempts', 'outbox_rows', 'jobs']) {
    expect(keptOf(table)).toEqual([false, false])
  }
})

test('a size grows with what is in the table', async () => {
  const sizeOf = async (wanted: string) => (await sizesOf(database.db)).find(({ name }) => name === wanted)?.bytes
  const empty = await sizeOf('accounts')
  const id = newId('account', new Date())
  await database.db.insertInto('accounts').values({ id, name: 'Benchmark', plan: 'free' }).execute()
  expect(await sizeOf('accounts')).toBeGreaterThan(empty ?? Number.NaN)
})
