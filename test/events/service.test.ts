import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Event } from '../../contract/events.ts'
import { exampleId } from '../../contract/ids.ts'
import { inTransaction } from '../../server/database/connection.ts'
import type { NewEvent } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
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
const removed: NewEvent = { ...added, type: 'subscriber.removed' }

async function newAccount(): Promise<string> {
  const id = newId('account', world.clock.now())
  await world.db.insertInto('accounts').values({ id, name: 'One test', plan: 'scale' }).execute()
  return id
}

async function append(account: string, ...events: NewEvent[]): Promise<string[]> {
  return inTransaction(world.db, (trx) => world.outbox.append(trx, live(account), events))
}

const idsOf = (page: { data: Event[] }) => page.data.map(({ id }) => String(id))

test('listing events is newest first, as they are pushed, with the mode beside', async () => {
  const { db, events } = world
  const account = await newAccount()
  const ids = await append(account, added, removed)
  const page = await events.list(db, live(account), { limit: 10 })
  expect(idsOf(page)).toEqual(ids.toReversed())
  const stored = await db
    .selectFrom('events')
    .select('body')
    .where('id', '=', ids[0] ?? '')
    .executeTakeFirstOrThrow()
  const { mode, ...pushed } = page.data[1] ?? {}
  expect([JSON.stringify(pushed), mode]).toEqual([stored.body, 'live'])
  expect(await events.get(db, live(account), ids[0] ?? '')).toEqual(page.data[1])
})

test('listing events can be limited to a type and to a time, both ways round', async () => {
  const { db, events, clock } = world
  const account = await newAccount()
  const [, early = ''] = await append(account, added, removed)
  world.moveClock(10)
  const since = clock.now().toISOString()
  const [at = ''] = await append(account, removed)
  world.moveClock(10)
  const [, late = ''] = await append(account, added, removed)
  const type = 'subscriber.removed'
  expect(idsOf(await events.list(db, live(account), { limit: 10, type }))).toEqual([late, at, early])
  expect(idsOf(await events.list(db, live(account), { limit: 10, type, since }))).toEqual([late, at])
  expect(idsOf(await events.list(db, live(account), { limit: 10, type, since, order: 'asc' }))).toEqual([at, late])
})

test.each(['0000-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59'])(
  'listing events takes the time %s',
  async (since) => {
    const { db, events } = world
    const account = await newAccount()
    const [id] = await append(account, added)
    const expected = since.startsWith('0') ? [id] : []
    expect(idsOf(await events.list(db, live(account), { limit: 10, since }))).toEqual(expected)
  },
)

test('listing events goes on after an event, oldest first unless told otherwise', async () => {
  const { db, events } = world
  const account = await newAccount()
  const [first = '', ...rest] = await append(account, added, removed, added)
  expect(idsOf(await events.list(db, live(account), { limit: 10, after: first }))).toEqual(rest)
  expect(idsOf(await events.list(db, live(account), { limit: 10, after: rest[1] }))).toEqual([])
  expect(idsOf(await events.list(db, live(account), { limit: 10, after: first, order: 'desc' }))).toEqual(
    rest.reverse(),
  )
})

test('listing events shows no samples, which can be got all the same', async () => {
  const { db, events, clock } = world
  const account = await newAccount()
  const id = newId('event', clock.now())
  const sample = { id, account_id: account, type: 'subscriber.added', body: '{}', sample: true }
  await db
    .insertInto('events')
    .values({ ...sample, created_at: clock.now() })
    .execute()
  expect(idsOf(await events.list(db, live(account), { limit: 10 }))).toEqual([])
  expect(idsOf(await events.list(db, live(account), { limit: 10, order: 'asc' }))).toEqual([])
  expect(await events.get(db, live(account), id)).toEqual({ mode: 'live' })
  await expect(events.get(db, testing(account), id)).rejects.toMatchObject({ code: 'not_found' })
})

test("listing events shows nothing of another account's", async () => {
  const { db, events } = world
  const [ours, theirs] = [await newAccount(), await newAccount()]
  const [id = ''] = await append(theirs, added)
  expect(await refusal(events.get(db, live(ours), id))).toBe('not_found')
  expect(idsOf(await events.list(db, live(ours), { limit: 10 }))).toEqual([])
  expect(idsOf(await events.list(db, live(ours), { limit: 10, order: 'asc' }))).toEqual([])
})

test('paging newest first shows each event of the beginning once, whatever is added meanwhile', async () => {
  const { db, events } = world
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 12 }),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 8 }),
      async (count, limit, additions) => {
        const account = await newAccount()
        const present = await append(account, ...Array.from({ length: count }, () => added))
        const seen: string[] = []
        let cursor: string | undefined
        do {
          const page = await events.list(db, live(account), { limit, cursor })
          seen.push(...idsOf(page))
          expect(page.data.length).toBeLessThanOrEqual(limit)
          cursor = page.nextCursor ?? undefined
          await append(account, ...Array.from({ length: additions.shift() ?? 0 }, () => removed))
        } while (cursor !== undefined)
        expect(seen).toEqual(present.toReversed())
      },
    ),
    { numRuns: 25 },
  )
})
