import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EventTypeName } from '../../contract/event-types.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { type FanOutMeans, fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { givePositions } from '../../server/outbox/positions.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import type { EventKind } from '../../server/webhook-delivery/scheduling/intake.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { takingFor } from '../support/flows.ts'
import { rowsRead } from '../support/rows-read.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase
let queue: Queue

beforeAll(async () => {
  database = await createTestDatabase()
  queue = await startQueue({
    connectionString: database.connectionString,
    works: false,
    onError: (error) => {
      throw error
    },
  })
})
afterAll(async () => {
  await queue.stop()
  await database.drop()
})

const outbox = createOutbox({ clock: systemClock, wake: () => {} })
const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }

async function addAccount(webhooks: { events: EventTypeName[]; disabled?: boolean }[]) {
  const accountId = newId('account', new Date())
  await database.db.insertInto('accounts').values({ id: accountId, name: 'Test', plan: 'scale' }).execute()
  const ids: string[] = []
  for (const { events, disabled = false } of webhooks) {
    const id = newId('webhook', new Date())
    ids.push(id)
    await database.db
      .insertInto('webhooks')
      .values({
        id,
        account_id: accountId,
        url: 'https://example.com/',
        events,
        secret: Buffer.from('sealed'),
        description: null,
        status: disabled ? 'disabled' : 'enabled',
        disabled_reason: disabled ? 'manual' : null,
        failing_since: null,
        previous_secret: null,
        previous_secret_expires_at: null,
      })
      .execute()
  }
  return { accountId, ids }
}

async function emit(accountId: string, count: number): Promise<string[]> {
  return inTransaction(database.db, (trx) =>
    outbox.append(
      trx,
      live(accountId),
      Array.from({ length: count }, () => ({ type: 'contact.deleted' as const, data })),
    ),
  )
}

async function fanOutAll(): Promise<void> {
  while ((await fanOutBatch({ db: database.db, queue, clock: systemClock })).events > 0);
}

async function deliveriesOf(accountId: string) {
  return database.db.selectFrom('deliveries').selectAll().where('account_id', '=', accountId).execute()
}

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

/** Reads by kind, from the first one behind `behind` on, and of the limited one no more than `max`. */
async function fanOutByKind({
  behind = null,
  limited = { max: 0, accountId: '' },
}: {
  behind?: EventKind | null
  limited?: { max: number; accountId: string }
} = {}) {
  const taking = limitedTo(limited.max, limited.accountId)
  const intake = { ...taking.intake, reading: { from: 'kinds' as const, behind } }
  const done = await fanOutBatch({ db: database.db, queue, clock: systemClock, taking: { ...taking, intake } })
  if (done.looked.from !== 'kinds') throw new Error('it read at the front')
  const { last, more } = done.looked
  return { eventIds: done.eventIds, last, more }
}

const kindOf = (accountId: string): EventKind => ({ accountId, mode: 'live', type: 'contact.deleted' })

test('the fan-out takes the first events of each kind, however many wait of another', async () => {
  const [flood, next, third] = [await addAccount([]), await addAccount([]), await addAccount([])]
  const ids = await emit(flood.accountId, 2_500)
  const [ofOtherType = ''] = await emit(flood.accountId, 1)
  await database.db
    .updateTable('outbox_rows')
    .set({ type: 'contact.created' })
    .where('event_id', '=', ofOtherType)
    .execute()
  const few = await emit(next.accountId, 2)
  const [own = ''] = await emit(third.accountId, 1)
  // A poller has given some of them their positions.
  await givePositions(database.db, flood.accountId)
  await givePositions(database.db, next.accountId)

  const limited = { max: 0, accountId: flood.accountId }
  expect(await fanOutByKind({ limited })).toEqual({ eventIds: [ofOtherType, ...few, own], last: null, more: [] })
  expect(await fanOutByKind({ limited: { ...limited, max: 5 } })).toMatchObject({ eventIds: ids.slice(0, 5) })
  expect(await fanOutByKind()).toEqual({ eventIds: ids.slice(5, 105), last: null, more: [flood.accountId] })
  expect(await fanOutByKind({ behind: kindOf(flood.accountId) })).toEqual({ eventIds: [], last: null, more: [] })
  await fanOutAll()
  expect(await fanOutByKind()).toEqual({ eventIds: [], last: null, more: [] })
})

test('the fan-out goes on behind the last kind it has looked at', async () => {
  const accountIds: string[] = []
  for (let count = 0; count < 130; count++) accountIds.push((await addAccount([])).accountId)
  const eventIds: string[] = []
  for (const accountId of accountIds) eventIds.push(...(await emit(accountId, 1)))
  const first = await fanOutByKind()
  expect(first).toMatchObject({ eventIds: eventIds.slice(0, 125), last: kindOf(accountIds[124] ?? '') })
  expect(await fanOutByKind({ behind: first.last })).toMatchObject({ eventIds: eventIds.slice(125), last: null })
})

test('the fan-out looks at a thousand events of all kinds together', async () => {
  const accountIds: string[] = []
  for (let count = 0; count < 12; count++) accountIds.push((await addAccount([])).accountId)
  const eventIds: string[][] = []
  for (const accountId of accountIds) eventIds.push(await emit(accountId, 150))
  const first = await fanOutByKind()
  expect(first.eventIds).toEqual(eventIds.slice(0, 10).flatMap((ids) => ids.slice(0, 100)))
  expect(first).toMatchObject({ last: kindOf(accountIds[9] ?? '') })
  expect(new Set(first.more)).toEqual(new Set(accountIds.slice(0, 10)))
  const second = await fanOutByKind({ behind: first.last })
  expect(second).toMatchObject({ last: null, more: accountIds.slice(10) })
  await fanOutAll()
})

test('events that are leased take no part in a batch by kind', async () => {
  const busy = await addAccount([])
  const ids = await emit(busy.accountId, 30)
  for (let count = 0; count < 125; count++) await emit((await addAccount([])).accountId, 1)
  await database.db
    .updateTable('outbox_rows')
    .set({ lease: randomUUID(), leased_until: new Date(Date.now() + 60_000) })
    .where('account_id', '<>', busy.accountId)
    .execute()
  expect(await fanOutByKind()).toEqual({ eventIds: ids, last: null, more: [] })
  await database.db
    .updateTable('outbox_rows')
    .set({ lease: null, leased_until: new Date(0) })
    .execute()
  await fanOutAll()
})

test('the turn of a kind ends when its events have very many deliveries, and the batch says how far it came', async () => {
  const wide = [await addWide(), await addWide()]
  const next = await addAccount([])
  const ids = [await emit(wide[0] ?? '', 3), await emit(wide[1] ?? '', 3)]
  const [own = ''] = await emit(next.accountId, 1)
  // Of 1,100 deliveries each.
  const first = await fanOutByKind()
  expect(first.eventIds).toEqual([ids[0]?.[0], ids[1]?.[0]])
  expect(first).toMatchObject({ last: kindOf(wide[1] ?? '') })
  expect(first.more).toContain(wide[0])
  expect(await fanOutByKind({ behind: first.last })).toMatchObject({ eventIds: [own], last: null })
  await fanOutAll()
  for (const accountId of wide) expect(await deliveriesOf(accountId)).toHaveLength(3 * 1_100)
})

/** An account with very many webhooks. */
async function addWide(): Promise<string> {
  const { accountId } = await addAccount([])
  const webhooks = Array.from({ length: 1_100 }, (_, index) => ({
    id: newId('webhook', new Date()),
    account_id: accountId,
    url: `https://example.com/${index}`,
    events: ['contact.deleted'],
    secret: Buffer.from('sealed'),
    status: 'enabled' as const,
  }))
  await database.db.insertInto('webhooks').values(webhooks).execute()
  return accountId
}

test('a batch reads the webhooks of one account after the other where all together have very many', async () => {
  const wide: string[] = []
  for (let count = 0; count < 20; count++) wide.push(await addWide())
  const eventIds: string[] = []
  for (const accountId of wide) eventIds.push(...(await emit(accountId, 1)))
  const means = { db: database.db, queue, clock: systemClock }
  const read = await rowsRead(database.db, async (handle) => {
    expect(await fanOutBatch({ ...means, db: handle })).toMatchObject({ eventIds: eventIds.slice(0, 2) })
  })
  // 5,000 and twice 1,100, each with its flow, and what is written for 2,200 deliveries is checked.
  expect(read).toBeLessThan(22_000)
  await fanOutAll()
  for (const accountId of wide) expect(await deliveriesOf(accountId)).toHaveLength(1_100)
})

test('several workers, at the front and by kind, take each event once', async () => {
  const accounts: string[] = []
  for (let count = 0; count < 150; count++) {
    accounts.push((await addAccount([{ events: ['contact.deleted'] }])).accountId)
  }
  const ids = (await Promise.all(accounts.map((id, index) => emit(id, index % 10 === 0 ? 150 : 5)))).flat()
  const taken: string[] = []
  async function work(kinds: boolean): Promise<void> {
    let behind: EventKind | null = null
    for (let count = 0; ; count++) {
      const reading = kinds && count % 2 === 0 ? { from: 'kinds' as const, behind } : { from: 'front' as const }
      const taking = takingFor(0)
      const done = await fanOutBatch({
        db: database.db,
        queue,
        clock: systemClock,
        taking: { ...taking, intake: { ...taking.intake, reading } },
      })
      taken.push(...done.eventIds)
      if (done.looked.from === 'kinds') behind = done.looked.last
      else if (done.looked.isAll && done.events === 0) return
    }
  }
  await Promise.all([work(false), work(true), work(true), work(true)])
  expect(taken.toSorted()).toEqual(ids.toSorted())
  const { count } = await database.db
    .selectFrom('deliveries')
    .select((eb) => eb.fn.countAll<string>().as('count'))
    .where('account_id', 'in', accounts)
    .executeTakeFirstOrThrow()
  expect(Number(count)).toBe(ids.length)
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

/** A worker that takes no more than `max` events of this kind. */
function limitedTo(max: number, accountId: string): NonNullable<FanOutMeans['taking']> {
  const taking = takingFor(0)
  const limits = [{ accountId, mode: 'live' as const, type: 'contact.deleted', max }]
  return { ...taking, intake: { ...taking.intake, limits } }
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
