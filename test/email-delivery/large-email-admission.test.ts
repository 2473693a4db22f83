import { expect, test } from 'vitest'
import { createLargeEmailAdmission, type LargeEmailLimits } from '../../server/email-delivery/large-email-admission.ts'

const never = new AbortController().signal
const roomy: LargeEmailLimits = { bytes: 100, emails: 10, perDestination: 10, waiting: 10 }

/** A room with the names of those that have entered, and of those that were sent away. */
function open(limits: Partial<LargeEmailLimits>) {
  const room = createLargeEmailAdmission({ ...roomy, ...limits })
  const inside: string[] = []
  const away: string[] = []
  const leaves = new Map<string, () => void>()
  async function enter(name: string, bytes: number, destination = 'a.test', signal = never): Promise<void> {
    const leave = await room.enter({ destination, bytes }, signal)
    if (leave === null) away.push(name)
    else {
      inside.push(name)
      leaves.set(name, leave)
    }
  }
  return {
    inside,
    away,
    /** Comes, and goes in if it may at once. */
    async come(...email: Parameters<typeof enter>): Promise<void> {
      void enter(...email)
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

test('as many large emails are admitted as there are bytes for; the next follow in the order they came', async () => {
  const { inside, come, leave } = open({})
  await come('one', 60)
  await come('large', 50)
  await come('small', 10)
  expect(inside).toEqual(['one'])
  await leave('one')
  expect(inside).toEqual(['one', 'large', 'small'])
})

test('an email that is larger than the room is admitted alone', async () => {
  const { inside, come, leave } = open({})
  await come('huge', 1_000)
  await come('next', 1)
  expect(inside).toEqual(['huge'])
  await leave('huge')
  expect(inside).toEqual(['huge', 'next'])
})

test('large emails to one destination are admitted a few at a time, and let others pass', async () => {
  const { inside, come, leave } = open({ perDestination: 1 })
  await come('a1', 1)
  await come('a2', 1)
  await come('b1', 1, 'b.test')
  expect(inside).toEqual(['a1', 'b1'])
  await leave('a1')
  expect(inside).toEqual(['a1', 'b1', 'a2'])
})

test('large emails to all destinations are admitted a few at a time', async () => {
  const { inside, come, leave } = open({ emails: 2 })
  for (const name of ['a', 'b', 'c']) await come(name, 1, name)
  expect(inside).toEqual(['a', 'b'])
  await leave('b')
  expect(inside).toEqual(['a', 'b', 'c'])
})

test('a destination does not wait in all places there are: others find one', async () => {
  const { away, come, inside } = open({ emails: 1, waiting: 6 })
  await come('first', 1)
  for (const name of ['a1', 'a2', 'a3', 'a4']) await come(name, 1)
  expect(away).toEqual(['a4'])
  for (const name of ['b1', 'b2', 'b3']) await come(name, 1, 'b.test')
  expect([away, inside]).toEqual([['a4', 'b3'], ['first']])
})

test('an email whose turn it is does not wait, however many others do', async () => {
  const { inside, come } = open({ perDestination: 1, waiting: 1 })
  await come('a1', 1)
  await come('a2', 1)
  await come('b1', 1, 'b.test')
  expect(inside).toEqual(['a1', 'b1'])
})

test('an email that waits is sent away when it is broken off, and takes no bytes', async () => {
  const { inside, away, come, leave } = open({ emails: 1 })
  const breaking = new AbortController()
  await come('first', 100)
  await come('broken off', 100, 'a.test', breaking.signal)
  await come('last', 100)
  breaking.abort()
  await come('late', 1, 'a.test', breaking.signal)
  expect(away).toEqual(['broken off', 'late'])
  await leave('first')
  expect(inside).toEqual(['first', 'last'])
})
