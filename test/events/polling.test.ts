import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Event } from '../../contract/events.ts'
import { exampleId } from '../../contract/ids.ts'
import { connect, type Db, inTransaction, type Trx } from '../../server/database/connection.ts'
import type { NewEvent } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { live, testing } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.end())

const added: NewEvent = {
  type: 'subscriber.added',
  data: { subscriberId: exampleId('subscriber'), email: 'ada@example.com', status: 'active' },
}
const sent: NewEvent = {
  type: 'email.sent',
  data: { emailId: exampleId('email'), to: 'ada@example.com', subject: 'Hello', sentAt: '2026-03-01T09:30:00.000Z' },
}
const removed: NewEvent = { ...added, type: 'subscriber.removed' }

async function newAccount(): Promise<string> {
  const id = newId('account', world.clock.now())
  await world.db.insertInto('accounts').values({ id, name: 'One test', plan: 'scale' }).execute()
  return id
}

async function append(account: string, ...events: NewEvent[]): Promise<string[]> {
  return inTransaction(world.db, (trx) => world.outbox.append(trx, live(account), events))
}

/** Takes events out of the outbox as every version of the fan-out does. */
async function leaveOutbox(db: Db | Trx, ids: readonly string[]): Promise<void> {
  await sql`DELETE FROM outbox WHERE event_id = ANY(${ids}::text[])`.execute(db)
}

const idsOf = (page: { data: Event[] }) => page.data.map(({ id }) => String(id))

async function poll(account: string, after?: string, query: { type?: 'subscriber.removed'; limit?: number } = {}) {
  const { db, events } = world
  return idsOf(await events.list(db, live(account), { limit: 100, order: 'asc', after, ...query }))
}

/** A transaction that stays open until it is told to end. */
async function holdOpen(db: Db, begin: (trx: Trx) => Promise<unknown>) {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const done = inTransaction(db, async (trx) => {
    await begin(trx)
    begun.resolve()
    await end.promise
  })
  await Promise.race([begun.promise, done])
  async function commit(): Promise<void> {
    end.resolve()
    await done
  }
  return { commit, [Symbol.asyncDispose]: commit }
}

test('polling shows at once what is committed, and what commits late after it, from whatever pool', async () => {
  const { db, events, outbox, connectionString } = world
  const account = await newAccount()
  await using mail = connect({
    connectionString,
    applicationName: 'another name',
    max: 1,
    onError: () => undefined,
  })
  let late = ''
  await using slow = await holdOpen(mail, async (trx) => {
    ;[late = ''] = await outbox.append(trx, live(account), [added])
  })
  const [early = ''] = await append(account, added)
  expect(late < early).toBe(true)
  expect(await poll(account)).toEqual([early])
  await slow.commit()
  expect(await poll(account, early)).toEqual([late])
  expect(await poll(account)).toEqual([early, late])
  expect(idsOf(await events.list(db, live(account), { limit: 10 }))).toEqual([late, early])
  expect(idsOf(await events.list(db, live(account), { limit: 10, order: 'desc', after: early }))).toEqual([late])
})

test('polling keeps the order of what was polled while it waited for its fan-out', async () => {
  const account = await newAccount()
  const [first = '', second = ''] = await append(account, added, added)
  expect(await poll(account)).toEqual([first, second])
  const third = await append(account, added)
  // In another order than they were shown in.
  await leaveOutbox(world.db, third)
  await leaveOutbox(world.db, [second])
  await leaveOutbox(world.db, [first])
  expect(await poll(account)).toEqual([first, second, ...third])
})

test('polling shows what a fan-out has locked, and nothing of a fan-out that is undone', async () => {
  const account = await newAccount()
  const ids = await append(account, added, added)
  const taken = inTransaction(world.db, async (trx) => {
    await sql`SELECT FROM outbox WHERE event_id = ANY(${ids}::text[]) FOR UPDATE SKIP LOCKED`.execute(trx)
    expect(await poll(account)).toEqual(ids)
    await leaveOutbox(trx, ids)
    throw new Error('undone')
  })
  await expect(taken).rejects.toThrow('undone')
  expect(await poll(account)).toEqual(ids)
})

test('polling waits for a fan-out that has taken its events out of the outbox, and misses none of them', async () => {
  const account = await newAccount()
  const ids = await append(account, added, added)
  await using fanOut = await holdOpen(world.db, (trx) => leaveOutbox(trx, ids))
  const polled = poll(account)
  await untilSomebodyWaits(world.db, 'give_positions_in_outbox')
  await fanOut.commit()
  // None, where the machine was so slow that the second is over.
  const first = await polled
  expect([...first, ...(await poll(account, first.at(-1)))]).toEqual(ids)
})

test('polling waits a second at most: then it shows what has a position, and the rest comes with the next call', async () => {
  const [account, other] = [await newAccount(), await newAccount()]
  const [first = ''] = await append(account, added)
  expect(await poll(account)).toEqual([first])
  const rest = await append(account, added, added)
  const theirs = await append(other, added)
  await using fanOut = await holdOpen(world.db, (trx) => leaveOutbox(trx, rest))
  expect(await poll(account)).toEqual([first])
  expect(await poll(account, first)).toEqual([])
  expect(await poll(other)).toEqual(theirs)
  await fanOut.commit()
  expect(await poll(account, first)).toEqual(rest)
})

test('an event to go on after that the account does not have is refused, and told how to go on', async () => {
  const { db, events, clock } = world
  const [account, stranger] = [await newAccount(), await newAccount()]
  const [theirs = ''] = await append(stranger, added)
  const sample = newId('event', clock.now())
  const row = { account_id: account, type: 'subscriber.added', body: '{}', created_at: clock.now() }
  await db
    .insertInto('events')
    .values({ ...row, id: sample, sample: true })
    .execute()
  const [ofOtherMode = ''] = await inTransaction(db, (trx) => world.outbox.append(trx, testing(account), [sent]))
  for (const after of [newId('event', clock.now()), theirs, sample, ofOtherMode]) {
    const asked = events.list(db, live(account), { limit: 10, after })
    expect(await refusal(asked)).toBe('event_not_found')
    await expect(asked).rejects.toThrow(/leave out "after" and give "since"/)
    const paged = events.list(db, live(account), { limit: 10, cursor: after.replace(/^evt_/, '') })
    expect(await refusal(paged)).toBe('event_not_found')
    await expect(paged).rejects.toThrow(/leave out "cursor" and give "since"/)
  }
})

test('an event to go on after may be one that has no place yet: then it is first of those that have none', async () => {
  const account = await newAccount()
  const [first = '', second = '', third = ''] = await append(account, added, removed, added)
  expect(await poll(account, second)).toEqual([third])
  expect(await poll(account)).toEqual([first, second, third])
})
