import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { systemClock } from '../../server/lib/clock.ts'
import type { Queue } from '../../server/queue/queue.ts'
import {
  addAccount,
  database,
  deliveriesOf,
  emit,
  fanOutAll,
  limitedTo,
  queue,
  startFanOut,
  stopFanOut,
} from './by-hand.ts'

beforeAll(startFanOut)
afterAll(stopFanOut)

test('the fan-out makes a delivery with a job for each enabled webhook of the account that wants the type', async () => {
  const { accountId, ids } = await addAccount([
    { events: ['contact.deleted', 'contact.created'] },
    { events: ['contact.created'] },
    { events: ['contact.deleted'], disabled: true },
    { events: ['contact.deleted'] },
  ])
  await addAccount([{ events: ['contact.deleted'] }])
  const [eventId] = await emit(accountId, 1)
  await fanOutAll()
  const deliveries = await deliveriesOf(accountId)
  expect(deliveries.map((delivery) => delivery.webhook_id).sort()).toEqual([ids[0], ids[3]])
  expect(new Set(deliveries.map((delivery) => delivery.event_id))).toEqual(new Set([eventId]))
  expect(
    await queue.missing(
      database.db,
      deliveries.map(({ id }) => id),
    ),
  ).toEqual([])
})

test('the fan-out takes an event out of the outbox although nobody wants it', async () => {
  const { accountId } = await addAccount([])
  await emit(accountId, 3)
  await fanOutAll()
  expect(await database.db.selectFrom('outbox_rows').selectAll().execute()).toEqual([])
})

test('the fan-out takes each event once, however many workers there are', async () => {
  const { accountId } = await addAccount([{ events: ['contact.deleted'] }, { events: ['contact.deleted'] }])
  const ids = (await Promise.all(Array.from({ length: 20 }, () => emit(accountId, 100)))).flat()
  await Promise.all(Array.from({ length: 6 }, fanOutAll))
  const deliveries = await deliveriesOf(accountId)
  const pairs = new Set(deliveries.map((delivery) => `${delivery.event_id} ${delivery.webhook_id}`))
  expect(deliveries).toHaveLength(4_000)
  expect(pairs.size).toBe(4_000)
  expect(new Set(deliveries.map((delivery) => delivery.event_id))).toEqual(new Set(ids))
  expect(await database.db.selectFrom('outbox_rows').selectAll().execute()).toEqual([])
})

test('the fan-out bounds a transaction by its deliveries, and leaves the rest of the events for the next', async () => {
  const { accountId } = await addAccount(Array.from({ length: 60 }, () => ({ events: ['contact.deleted'] })))
  await emit(accountId, 200)
  const first = await fanOutBatch({ db: database.db, queue, clock: systemClock })
  expect(first.deliveries).toBeLessThan(200 * 60)
  expect(first.events).toBe(first.deliveries / 60)
  await fanOutAll()
  expect(await deliveriesOf(accountId)).toHaveLength(200 * 60)
})

const all = { from: 'front', isAll: true }
const notAll = { from: 'front', isAll: false }

test('the fan-out reads of a kind no more than its limit, and looks at a thousand events for others', async () => {
  const [left, next] = [await addAccount([]), await addAccount([])]
  const ids = await emit(left.accountId, 999)
  const [wanted = ''] = await emit(next.accountId, 1)
  const [hidden = ''] = await emit(next.accountId, 1)
  const fanOut = (max: number) =>
    fanOutBatch({ db: database.db, queue, clock: systemClock, taking: limitedTo(max, left.accountId) })
  expect(await fanOut(0)).toMatchObject({ eventIds: [wanted], looked: notAll, rest: true })
  expect(await fanOut(0)).toMatchObject({ eventIds: [hidden], looked: notAll, rest: true })
  expect(await fanOut(3)).toMatchObject({ eventIds: ids.slice(0, 3), looked: all, rest: true })
  expect(await fanOut(10_000)).toMatchObject({ eventIds: ids.slice(3), looked: all, rest: false })
  expect(await fanOut(0)).toMatchObject({ eventIds: [], looked: all, rest: false })
})

/** Locks events as the fan-out of another process does, until it is disposed of. */
async function lockAsOther(eventIds: readonly string[]): Promise<AsyncDisposable> {
  const { promise: release, resolve } = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const holding = inTransaction(database.db, async (trx) => {
    await trx.selectFrom('outbox_rows').select('event_id').where('event_id', 'in', eventIds).forUpdate().execute()
    locked.resolve()
    await release
  })
  holding.catch(locked.reject)
  await locked.promise
  return {
    async [Symbol.asyncDispose]() {
      resolve()
      await holding
    },
  }
}

test('the fan-out takes what is behind the pages that another process has locked', async () => {
  const { accountId } = await addAccount([{ events: ['contact.deleted'] }])
  const ids = await emit(accountId, 2_100)
  const means = { db: database.db, queue, clock: systemClock }
  {
    await using _other = await lockAsOther(ids.slice(0, 2_090))
    const limited = await fanOutBatch({ ...means, taking: limitedTo(3, accountId) })
    expect(limited).toMatchObject({ eventIds: ids.slice(2_090, 2_093), looked: all, rest: true })
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: ids.slice(2_093), looked: all, rest: false })
    // Nothing is left but what the other process has: there is no reason to look again at once.
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: [], looked: all, rest: false })
  }
  await fanOutAll()
  expect(await deliveriesOf(accountId)).toHaveLength(2_100)
})

test('the fan-out adds the next page where another process has locked most of a page', async () => {
  const { accountId } = await addAccount([{ events: ['contact.deleted'] }])
  const ids = await emit(accountId, 2_100)
  const means = { db: database.db, queue, clock: systemClock }
  {
    await using _other = await lockAsOther(ids.slice(0, 900))
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: ids.slice(900, 2_000), looked: notAll, rest: false })
  }
  {
    await using _other = await lockAsOther(ids.slice(0, 400))
    const taken = [...ids.slice(400, 900), ...ids.slice(2_000)]
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: taken, looked: notAll })
  }
  await fanOutAll()
  expect(await deliveriesOf(accountId)).toHaveLength(2_100)
})

test('events that another process has locked do not count for the limit of their kind', async () => {
  const { accountId } = await addAccount([{ events: ['contact.deleted'] }])
  const ids = await emit(accountId, 20)
  const means = { db: database.db, queue, clock: systemClock, taking: limitedTo(5, accountId) }
  {
    await using _other = await lockAsOther(ids.slice(0, 10))
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: ids.slice(10, 15), looked: all, rest: true })
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: ids.slice(15), rest: true })
    expect(await fanOutBatch(means)).toMatchObject({ eventIds: [], looked: all, rest: false })
  }
  await fanOutAll()
  expect(await deliveriesOf(accountId)).toHaveLength(20)
})

test('the fan-out leaves the events where they are when it fails half-way', async () => {
  const { accountId } = await addAccount([{ events: ['contact.deleted'] }])
  await emit(accountId, 5)
  const broken: Queue = { ...queue, flows: { ...queue.flows, put: () => Promise.reject(new Error('no queue')) } }
  await expect(fanOutBatch({ db: database.db, queue: broken, clock: systemClock })).rejects.toThrow('no queue')
  expect(await deliveriesOf(accountId)).toEqual([])
  expect(await database.db.selectFrom('outbox_rows').selectAll().execute()).toHaveLength(5)
  await fanOutAll()
  expect(await deliveriesOf(accountId)).toHaveLength(5)
})
