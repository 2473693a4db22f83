import { expect, test } from 'vitest'
import { createKeyedSemaphore, type KeyedSemaphoreLimits } from '../../server/lib/semaphore.ts'

const never = new AbortController().signal
const roomy: KeyedSemaphoreLimits = { permits: 100, holders: 10, holdersPerKey: 10, waiting: 10 }

/** A semaphore with the names of its holders so far, and of the callers that got null. */
function open(limits: Partial<KeyedSemaphoreLimits>) {
  const semaphore = createKeyedSemaphore({ ...roomy, ...limits })
  const inside: string[] = []
  const away: string[] = []
  const leaves = new Map<string, () => void>()
  async function enter(name: string, permits: number, key = 'a', signal = never): Promise<void> {
    const leave = await semaphore.acquire({ key, permits }, signal)
    if (leave === null) away.push(name)
    else {
      inside.push(name)
      leaves.set(name, leave)
    }
  }
  return {
    inside,
    away,
    /** Asks for permits, and gets them if they are free. */
    async come(...asked: Parameters<typeof enter>): Promise<void> {
      void enter(...asked)
      await settled()
    },
    async leave(name: string): Promise<void> {
      leaves.get(name)?.()
      await settled()
    },
  }
}

/** All promises that can go on have gone on. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

test('callers get permits that are free, and the next ones in the order they came', async () => {
  const { inside, come, leave } = open({})
  await come('one', 60)
  await come('large', 50)
  await come('small', 10)
  expect(inside).toEqual(['one'])
  await leave('one')
  expect(inside).toEqual(['one', 'large', 'small'])
})

test('a caller that wants more permits than there are holds all, alone', async () => {
  const { inside, come, leave } = open({})
  await come('huge', 1_000)
  await come('next', 1)
  expect(inside).toEqual(['huge'])
  await leave('huge')
  expect(inside).toEqual(['huge', 'next'])
})

test('callers above the limit of their key let others pass', async () => {
  const { inside, come, leave } = open({ holdersPerKey: 1 })
  await come('a1', 1)
  await come('a2', 1)
  await come('b1', 1, 'b')
  expect(inside).toEqual(['a1', 'b1'])
  await leave('a1')
  expect(inside).toEqual(['a1', 'b1', 'a2'])
})

test('holders are limited over all keys', async () => {
  const { inside, come, leave } = open({ holders: 2 })
  for (const name of ['a', 'b', 'c']) await come(name, 1, name)
  expect(inside).toEqual(['a', 'b'])
  await leave('b')
  expect(inside).toEqual(['a', 'b', 'c'])
})

test('no key takes all waiting places: other keys find one', async () => {
  const { away, come, inside } = open({ holders: 1, waiting: 6 })
  await come('first', 1)
  for (const name of ['a1', 'a2', 'a3', 'a4']) await come(name, 1)
  expect(away).toEqual(['a4'])
  for (const name of ['b1', 'b2', 'b3']) await come(name, 1, 'b')
  expect([away, inside]).toEqual([['a4', 'b3'], ['first']])
})

test('a caller that may start at once needs no waiting place', async () => {
  const { inside, come } = open({ holdersPerKey: 1, waiting: 1 })
  await come('a1', 1)
  await come('a2', 1)
  await come('b1', 1, 'b')
  expect(inside).toEqual(['a1', 'b1'])
})

test('an aborted caller gets null, and takes no permits', async () => {
  const { inside, away, come, leave } = open({ holders: 1 })
  const breaking = new AbortController()
  await come('first', 100)
  await come('broken off', 100, 'a', breaking.signal)
  await come('last', 100)
  breaking.abort()
  await come('late', 1, 'a', breaking.signal)
  expect(away).toEqual(['broken off', 'late'])
  await leave('first')
  expect(inside).toEqual(['first', 'last'])
})

test('an aborted caller no longer holds up those behind it', async () => {
  const { inside, come } = open({})
  const breaking = new AbortController()
  await come('first', 60)
  await come('large', 50, 'a', breaking.signal)
  await come('small', 40)
  expect(inside).toEqual(['first'])
  breaking.abort()
  await settled()
  expect(inside).toEqual(['first', 'small'])
})
