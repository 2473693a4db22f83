import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EventTypeName } from '../../contract/event-types.ts'
import type { Mode } from '../../contract/mode.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { givePositions } from '../../server/outbox/positions.ts'
import { newId } from '../../server/shared/ids.ts'
import type { EventKind } from '../../server/webhook-delivery/scheduling/intake.ts'
import { takingFor } from '../support/flows.ts'
import { rowsRead } from '../support/rows-read.ts'
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
  // A thousand for one kind, since there are no others any more.
  expect(await fanOutByKind()).toEqual({
    eventIds: ids.slice(5, 1_005),
    last: kindOf(flood.accountId),
    more: [flood.accountId, flood.accountId],
  })
  expect(await fanOutByKind({ behind: kindOf(flood.accountId) })).toEqual({ eventIds: [], last: null, more: [] })
  await fanOutAll()
  expect(await fanOutByKind()).toEqual({ eventIds: [], last: null, more: [] })
})

test('the kinds of an account share what an account with one kind has', async () => {
  const [many, one] = [await addAccount([]), await addAccount([])]
  const eventIds = await emit(many.accountId, 600)
  for (let kind = 0; kind < 10; kind++) {
    await database.db
      .updateTable('outbox_rows')
      .set({ type: `kind.${kind}` })
      .where('event_id', 'in', eventIds.slice(60 * kind, 60 * (kind + 1)))
      .execute()
  }
  const others = await emit(one.accountId, 600)
  const taken = new Set((await fanOutByKind()).eventIds)
  expect(eventIds.filter((id) => taken.has(id))).toHaveLength(500)
  expect(others.filter((id) => taken.has(id))).toHaveLength(500)
  await fanOutAll()
})

test('the kinds of an account share the deliveries that a batch makes of one', async () => {
  const events: EventTypeName[] = ['contact.deleted', 'contact.created']
  const webhooks = Array.from({ length: 20 }, () => ({ events }))
  const [two, one] = [await addAccount(webhooks), await addAccount(webhooks)]
  const eventIds = await emit(two.accountId, 20)
  const ofOtherType = eventIds.slice(10)
  await database.db
    .updateTable('outbox_rows')
    .set({ type: 'contact.created' })
    .where('event_id', 'in', ofOtherType)
    .execute()
  const others = await emit(one.accountId, 20)
  const taken = new Set((await fanOutByKind()).eventIds)
  // Of 20 deliveries each, the last of a kind begins below its 50, or 100.
  expect(eventIds.filter((id) => taken.has(id))).toHaveLength(3 + 3)
  expect(others.filter((id) => taken.has(id))).toHaveLength(5)
  await fanOutAll()
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

test('the fan-out looks at a thousand events of all kinds together, and at 25 of each in any case', async () => {
  const accountIds: string[] = []
  for (let count = 0; count < 50; count++) accountIds.push((await addAccount([])).accountId)
  const eventIds: string[][] = []
  for (const accountId of accountIds) eventIds.push(await emit(accountId, 30))
  const first = await fanOutByKind()
  expect(first.eventIds).toEqual(eventIds.slice(0, 40).flatMap((ids) => ids.slice(0, 25)))
  expect(first).toMatchObject({ last: kindOf(accountIds[39] ?? '') })
  expect(new Set(first.more)).toEqual(new Set(accountIds.slice(0, 40)))
  const second = await fanOutByKind({ behind: first.last })
  expect(second).toMatchObject({ eventIds: eventIds.slice(40).flat(), last: null, more: [] })
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
async function addWide(mode: Mode = 'live'): Promise<string> {
  const { accountId } = await addAccount([])
  const webhooks = Array.from({ length: 1_100 }, (_, index) => ({
    id: newId('webhook', new Date()),
    account_id: accountId,
    mode,
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

test('a batch ends when it has read very many webhooks of which none receives its events', async () => {
  const wide: string[] = []
  for (let count = 0; count < 10; count++) wide.push(await addWide('test'))
  const eventIds: string[] = []
  for (const accountId of wide) eventIds.push(...(await emit(accountId, 2)))
  const means = { db: database.db, queue, clock: systemClock }
  // An event of live mode alone, which these webhooks want in test mode.
  await database.db.updateTable('outbox_rows').set({ type: 'email.sent' }).execute()
  await database.db
    .updateTable('webhooks')
    .set({ events: ['email.sent'] })
    .where('account_id', 'in', wide)
    .execute()
  // Five accounts have 5,500, and then those that come after them.
  const inOrder = wide.slice(0, 5).flatMap((_, index) => eventIds.slice(2 * index, 2 * index + 2))
  expect(await fanOutBatch(means)).toMatchObject({ eventIds: inOrder, looked: { from: 'front', isAll: false } })
  await fanOutAll()
  for (const accountId of wide) expect(await deliveriesOf(accountId)).toEqual([])
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
