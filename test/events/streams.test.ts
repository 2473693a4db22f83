import { type KyselyPlugin, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { EventTypeName } from '../../contract/event-types.ts'
import { exampleId } from '../../contract/ids.ts'
import { type Db, inTransaction } from '../../server/database/connection.ts'
import {
  beginningId,
  createEventStreams,
  type EventStreams,
  maxStreams,
  maxStreamsPerAccount,
} from '../../server/events/streams.ts'
import type { NewEvent } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import type { Scope } from '../../server/shared/scope.ts'
import { patienceMs } from '../support/patience.ts'
import { live, testing } from '../support/scope.ts'
import { createWorld, refusal, type World } from '../support/worlds/audiences.ts'

let world: World
let streams: EventStreams
/** Statements that the streams have run. */
let statements = 0

const counting: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  async transformResult({ result }) {
    statements += 1
    return result
  },
}

const failed: unknown[] = []
const create = (intervalMs = 20) =>
  createEventStreams({ db: world.db.withPlugin(counting), intervalMs, onError: (error) => void failed.push(error) })

beforeAll(async () => {
  world = await createWorld()
})
afterAll(() => world.end())
afterEach(async () => {
  await streams?.close()
  expect(failed).toEqual([])
})

const added: NewEvent = {
  type: 'subscriber.added',
  data: { subscriberId: exampleId('subscriber'), email: 'ada@example.com', status: 'active' },
}
const sent: NewEvent = {
  type: 'email.sent',
  data: { emailId: exampleId('email'), to: 'ada@example.com', subject: 'Hello', sentAt: '2026-03-01T09:30:00.000Z' },
}

async function newAccount(): Promise<string> {
  const id = newId('account', world.clock.now())
  await world.db.insertInto('accounts').values({ id, name: 'One test', plan: 'scale' }).execute()
  return id
}

const append = (scope: Scope, ...events: NewEvent[]) =>
  inTransaction(world.db, (trx) => world.outbox.append(trx, scope, events))

/** Takes events out of the outbox as the fan-out does. */
const leaveOutbox = (ids: readonly string[]) =>
  sql`DELETE FROM outbox WHERE event_id = ANY(${ids}::text[])`.execute(world.db as Db)

/** A reader that takes `room` events, and then no more until it is told to. */
async function read(
  scope: Scope,
  { room = Number.POSITIVE_INFINITY, ...query }: { type?: EventTypeName; after?: string; room?: number } = {},
) {
  const ids: string[] = []
  let left = room
  let isEnded = false
  let look = () => {}
  const stream = await streams.open(scope, query, {
    write({ id, json }) {
      expect(JSON.parse(json).id).toBe(id)
      ids.push(id)
      left -= 1
      look()
      return left > 0
    },
    end() {
      isEnded = true
    },
  })
  return {
    stream,
    ids,
    isEnded: () => isEnded,
    drain(more: number) {
      left = more
      stream.drained()
    },
    async until(count: number): Promise<string[]> {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const timer = setTimeout(() => reject(new Error(`${ids.length} of ${count} events came`)), patienceMs)
      look = () => ids.length >= count && resolve()
      look()
      await promise.finally(() => clearTimeout(timer))
      return ids
    },
  }
}

test('a stream begins now, and has what becomes visible from then on, also while it waits in the outbox', async () => {
  streams = create()
  const scope = live(await newAccount())
  const before = await append(scope, sent)
  const reader = await read(scope)
  expect(reader.stream.startedAfter).toBe(before[0])
  const waiting = await append(scope, sent, added)
  await reader.until(2)
  const gone = await append(scope, sent)
  await leaveOutbox(gone)
  expect(await reader.until(3)).toEqual([...waiting, ...gone])
})

test('a stream of an account without events says so, and can be gone on with from the beginning', async () => {
  streams = create()
  const scope = live(await newAccount())
  const { stream } = await read(scope)
  expect(stream.startedAfter).toBe(beginningId)
  stream.close()
  const ids = await append(scope, sent, sent)
  const reader = await read(scope, { after: beginningId })
  expect(await reader.until(2)).toEqual(ids)
})

test('a stream after an event has every later one once, more of them than one statement reads', async () => {
  streams = create()
  const scope = live(await newAccount())
  const ids = await append(scope, ...Array.from({ length: 450 }, () => sent))
  const reader = await read(scope, { after: ids[9] as string })
  expect(await reader.until(440)).toEqual(ids.slice(10))
})

test('a stream shows the events of its type, mode and account', async () => {
  streams = create()
  const account = await newAccount()
  const all = await read(live(account))
  const typed = await read(live(account), { type: 'subscriber.added' })
  const tried = await read(testing(account))
  const theirs = await read(live(await newAccount()))
  const [first = '', second = ''] = await append(live(account), sent, added)
  const [third = ''] = await append(testing(account), sent)
  const [last = ''] = await append(live(account), added)
  expect(await all.until(3)).toEqual([first, second, last])
  expect(await typed.until(2)).toEqual([second, last])
  // Subscribers are shared by both modes.
  expect(await tried.until(3)).toEqual([second, third, last])
  expect(theirs.ids).toEqual([])
})

test('a stream has its events serialised once for all streams at its place', async () => {
  streams = create()
  const scope = live(await newAccount())
  const readers = [await read(scope), await read(scope), await read(scope)]
  const serialising = vi.spyOn(JSON, 'stringify')
  const [id = ''] = await append(scope, sent)
  for (const reader of readers) await reader.until(1)
  const times = serialising.mock.calls.filter(([value]) => Object(value).id === id && 'type' in Object(value)).length
  serialising.mockRestore()
  // Once when it was appended, and once for the three.
  expect(times).toBe(2)
})

test('a stream after an event that is not there, of the other mode or of another account is refused', async () => {
  streams = create()
  const account = await newAccount()
  const [id = ''] = await append(live(account), sent)
  for (const scope of [testing(account), live(await newAccount())]) {
    expect(await refusal(read(scope, { after: id }))).toBe('event_not_found')
  }
  expect(await refusal(read(live(account), { after: exampleId('event') }))).toBe('event_not_found')
})

test('a stream writes nothing to a slow reader until it takes more, and then what it has missed; others do not wait', async () => {
  streams = create()
  const scope = live(await newAccount())
  const slow = await read(scope, { room: 3 })
  const quick = await read(scope)
  const ids = await append(scope, ...Array.from({ length: 10 }, () => sent))
  expect(await quick.until(10)).toEqual(ids)
  expect(slow.ids).toEqual(ids.slice(0, 3))
  slow.drain(2)
  await slow.until(5)
  const more = await append(scope, sent)
  expect(await quick.until(11)).toEqual([...ids, ...more])
  expect(slow.ids).toEqual(ids.slice(0, 5))
  slow.drain(100)
  expect(await slow.until(11)).toEqual([...ids, ...more])
})

test('a stream misses nothing and has nothing twice while many write and it breaks off again and again', async () => {
  streams = create()
  const scope = live(await newAccount())
  const written: string[] = []
  const seen: string[] = []
  const writers = Array.from({ length: 4 }, async () => {
    for (let round = 0; round < 30; round++) {
      const ids = await append(scope, ...Array.from({ length: 1 + (round % 3) }, () => sent))
      written.push(...ids)
      if (round % 2 === 0) await leaveOutbox(ids)
    }
  })
  let after: string = beginningId
  const total = 4 * 60
  while (seen.length < total) {
    const reader = await read(scope, { after, room: 1 + (seen.length % 17) })
    await reader.until(1)
    reader.stream.close()
    seen.push(...reader.ids)
    after = reader.ids.at(-1) ?? after
  }
  await Promise.all(writers)
  expect(seen.toSorted()).toEqual(written.toSorted())
  expect(new Set(seen).size).toBe(total)
})

test('many streams that wait cost one statement for each look, and one more for each place with something new', async () => {
  streams = create(5_000)
  const accounts = await Promise.all(Array.from({ length: 5 }, newAccount))
  const readers = await Promise.all(accounts.flatMap((id) => Array.from({ length: 20 }, () => read(live(id)))))
  const [account = ''] = accounts
  const tell = async (count: number) => {
    await leaveOutbox(await append(live(account), sent))
    statements = 0
    // The next look.
    readers[0]?.stream.drained()
    await Promise.all(readers.slice(0, 20).map((reader) => reader.until(count)))
  }
  // Ends what opening them has begun.
  await tell(1)
  await tell(2)
  expect(statements).toBe(2)
})

test('an account has so many streams at most, and a process; a closed one makes room', async () => {
  streams = create(5_000)
  const scope = live(await newAccount())
  const open = await Promise.all(Array.from({ length: maxStreamsPerAccount }, () => read(scope)))
  expect(await refusal(read(scope))).toBe('rate_limit_exceeded')
  open[0]?.stream.close()
  open[0]?.stream.close()
  await read(scope)
  expect(await refusal(read(scope))).toBe('rate_limit_exceeded')
  // A refused one takes no place.
  expect(await refusal(read(live(await newAccount()), { after: exampleId('event') }))).toBe('event_not_found')

  for (let left = maxStreams - maxStreamsPerAccount; left > 0; left -= maxStreamsPerAccount) {
    const other = live(await newAccount())
    await Promise.all(Array.from({ length: maxStreamsPerAccount }, () => read(other)))
  }
  expect(await refusal(read(live(await newAccount())))).toBe('rate_limit_exceeded')
})

test('an account with streams at many places keeps no other one waiting', async () => {
  streams = create()
  const hostile = live(await newAccount())
  const ids = await append(hostile, ...Array.from({ length: 600 }, () => sent))
  await leaveOutbox(ids)
  const greedy = await Promise.all(
    Array.from({ length: maxStreamsPerAccount }, (_, index) => read(hostile, { after: ids[index] as string })),
  )
  const scope = live(await newAccount())
  const reader = await read(scope)
  const own = await append(scope, sent)
  expect(await reader.until(1)).toEqual(own)
  expect(greedy.filter((one) => one.ids.length < 550)).not.toEqual([])
  for (const [index, one] of greedy.entries()) expect(await one.until(599 - index)).toEqual(ids.slice(index + 1))
})

test('when the service stops, all streams end and none can be opened', async () => {
  streams = create()
  const scope = live(await newAccount())
  const reader = await read(scope)
  await Promise.all([streams.close(), streams.close()])
  expect(reader.isEnded()).toBe(true)
  expect(await refusal(read(scope))).toBe('unavailable')
})
