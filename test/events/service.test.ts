import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Event } from '../../contract/events.ts'
import { exampleId } from '../../contract/ids.ts'
import { systemClock } from '../../server/clock.ts'
import { connect, type Db, inTransaction, type Trx } from '../../server/database/connection.ts'
import { transactionsUnderway } from '../../server/events/queries.ts'
import { createEventService } from '../../server/events/service.ts'
import { firstIdAt, newId } from '../../server/ids.ts'
import { createOutbox, type NewEvent } from '../../server/outbox/append.ts'
import { createWorld, refusal, type World } from '../audiences/world.ts'

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
  return inTransaction(world.db, (trx) => world.outbox.append(trx, account, events))
}

const idsOf = (page: { data: Event[] }) => page.data.map(({ id }) => String(id))

/** Lets the second go by for which a poller may have to wait. */
function settle(): void {
  world.moveClock(2_000)
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

describe('listing events', () => {
  test('is newest first, exactly as they are pushed', async () => {
    const { db, events } = world
    const account = await newAccount()
    const ids = await append(account, added, removed)
    const page = await events.list(db, account, { limit: 10 })
    expect(idsOf(page)).toEqual(ids.toReversed())
    const stored = await db
      .selectFrom('events')
      .select('body')
      .where('id', '=', ids[0] ?? '')
      .executeTakeFirstOrThrow()
    expect(JSON.stringify(page.data[1])).toBe(stored.body)
    expect(await events.get(db, account, ids[0] ?? '')).toEqual(page.data[1])
  })

  test('can be limited to a type and to a time, both ways round', async () => {
    const { db, events, clock } = world
    const account = await newAccount()
    const [, early = ''] = await append(account, added, removed)
    world.moveClock(10)
    const since = clock.now().toISOString()
    const [at = ''] = await append(account, removed)
    world.moveClock(10)
    const [, late = ''] = await append(account, added, removed)
    const type = 'subscriber.removed'
    expect(idsOf(await events.list(db, account, { limit: 10, type }))).toEqual([late, at, early])
    expect(idsOf(await events.list(db, account, { limit: 10, type, since }))).toEqual([late, at])
    settle()
    expect(idsOf(await events.list(db, account, { limit: 10, type, since, order: 'asc' }))).toEqual([at, late])
  })

  test.each(['0000-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59'])('takes the time %s', async (since) => {
    const { db, events } = world
    const account = await newAccount()
    const [id] = await append(account, added)
    const expected = since.startsWith('0') ? [id] : []
    expect(idsOf(await events.list(db, account, { limit: 10, since }))).toEqual(expected)
  })

  test('goes on after an event, oldest first unless told otherwise', async () => {
    const { db, events } = world
    const account = await newAccount()
    const [first = '', ...rest] = await append(account, added, removed, added)
    settle()
    expect(idsOf(await events.list(db, account, { limit: 10, after: first }))).toEqual(rest)
    expect(idsOf(await events.list(db, account, { limit: 10, after: rest[1] }))).toEqual([])
    expect(idsOf(await events.list(db, account, { limit: 10, after: first, order: 'desc' }))).toEqual(rest.reverse())
  })

  test('shows no samples, which can be got all the same', async () => {
    const { db, events, clock } = world
    const account = await newAccount()
    const id = newId('event', clock.now())
    const sample = { id, account_id: account, type: 'subscriber.added', body: '{}', sample: true }
    await db
      .insertInto('events')
      .values({ ...sample, created_at: clock.now() })
      .execute()
    expect(idsOf(await events.list(db, account, { limit: 10 }))).toEqual([])
    expect(idsOf(await events.list(db, account, { limit: 10, order: 'asc' }))).toEqual([])
    expect(await events.get(db, account, id)).toEqual({})
  })

  test("shows nothing of another account's", async () => {
    const { db, events } = world
    const [ours, theirs] = [await newAccount(), await newAccount()]
    const [id = ''] = await append(theirs, added)
    expect(await refusal(events.get(db, ours, id))).toBe('not_found')
    expect(idsOf(await events.list(db, ours, { limit: 10 }))).toEqual([])
    expect(idsOf(await events.list(db, ours, { limit: 10, after: firstIdAt('event', new Date(0)) }))).toEqual([])
  })
})

describe('polling', () => {
  test('misses nothing of a transaction that commits late', async () => {
    const { db, events, outbox } = world
    const account = await newAccount()
    const [before = ''] = await append(account, added)
    world.moveClock(5_000)

    let late = ''
    await using slow = await holdOpen(db, async (trx) => {
      ;[late = ''] = await outbox.append(trx, account, [added])
    })
    const [early = ''] = await append(account, added)
    expect(late < early).toBe(true)
    // Newest first, what is committed is shown at once; a poller waits.
    expect(idsOf(await events.list(db, account, { limit: 10 }))).toEqual([early, before])
    expect(idsOf(await events.list(db, account, { limit: 10, order: 'asc' }))).toEqual([before])

    await slow.commit()
    settle()
    expect(idsOf(await events.list(db, account, { limit: 10, after: before }))).toEqual([late, early])
  })

  test('waits for transactions of ours, in whatever process, and not for those of other programs', async () => {
    const { db, connectionString } = world
    const url = new URL(connectionString)
    url.searchParams.set('application_name', 'backup')
    await using others = connect({ connectionString: url.href, max: 1, onError: () => undefined })
    await using _backup = await holdOpen(others, (trx) => trx.selectFrom('events').select('id').execute())
    expect((await transactionsUnderway(db)).oldestAgeMs).toBeNull()

    // It has not written yet, but may have made an identifier.
    await using ours = await holdOpen(db, (trx) => trx.selectFrom('events').select('id').execute())
    expect((await transactionsUnderway(db)).oldestAgeMs).toBeGreaterThan(0)
    await ours.commit()
    expect((await transactionsUnderway(db)).oldestAgeMs).toBeNull()
  })

  test('while others write shows every event once and in order', async () => {
    const { db } = world
    // The time of the database cannot be moved, and is compared with ours.
    const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
    const events = createEventService({ clock: systemClock })
    const account = await newAccount()
    const written: string[] = []
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let round = 0; round < 25; round++) {
        await inTransaction(db, async (trx) => {
          const ids = await outbox.append(trx, account, [added, removed])
          // Some commit later than others that made their identifiers after them.
          for (let wait = 0; wait < (writer * round) % 20; wait++)
            await trx.selectFrom('accounts').select('id').execute()
          written.push(...ids)
        })
      }
    })
    const seen: string[] = []
    let writing = true
    const poller = (async () => {
      while (writing || seen.length < written.length) {
        const page = await events.list(db, account, { limit: 100, order: 'asc', after: seen.at(-1) })
        seen.push(...idsOf(page))
      }
    })()
    await Promise.all(writers)
    writing = false
    await poller
    expect(seen).toEqual(written.toSorted())
  })
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
          const page = await events.list(db, account, { limit, cursor })
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
