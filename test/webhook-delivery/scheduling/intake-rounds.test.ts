import { afterEach, expect, test, vi } from 'vitest'
import type { Reservation } from '../../../server/webhook-delivery/scheduling/intake.ts'
import { atEnd, fill, flow, kindOf, other, quicken, setUp } from './intake-setup.ts'

/* Where the batches of the fan-out read: at the front of the outbox, or by kind. */

afterEach(() => {
  vi.useRealTimers()
})

/** The first events of the outbox, behind which there are more. */
const atFront = { leased: [], looked: { from: 'front', isAll: false }, rest: true } as const

/** A batch by kind that has come to the kind of this account. Null: to the end. */
function byKind(last: string | null, more: readonly string[] = []) {
  const kind = last === null ? null : kindOf({ ...flow, account: last })
  return { leased: [], looked: { from: 'kinds' as const, last: kind, more }, rest: true }
}

type Intakes = ReturnType<typeof setUp>['intakes']

/** A batch that takes so long. Returns the account behind whose kind it reads, or that it reads at the front. */
async function batch(intakes: Intakes, taken: Parameters<Reservation['fill']>[0], tookMs = 0): Promise<string> {
  const { reading, fill: end } = await intakes.open()
  vi.advanceTimersByTime(tookMs)
  end(taken)
  return reading.from === 'front' ? 'front' : (reading.behind?.accountId ?? 'first kind')
}

/** The same of several batches, one after the other. */
async function batches(intakes: Intakes, all: [Parameters<Reservation['fill']>[0], number][]): Promise<string[]> {
  const read: string[] = []
  for (const [taken, tookMs] of all) read.push(await batch(intakes, taken, tookMs))
  return read
}

test('an intake looks at all kinds every 100 ms while more events wait than a batch looks at', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  const first = [
    [atFront, 99],
    [atFront, 1],
    [byKind('acc_5'), 0],
    [byKind(null), 0],
    [atFront, 99],
  ] as const
  const second = [
    [atFront, 1],
    [byKind(null), 0],
    [atEnd, 100],
    [atEnd, 0],
  ] as const
  const read = await batches(
    intakes,
    [...first, ...second].map(([taken, tookMs]) => [taken, tookMs]),
  )
  expect(read).toEqual(['front', 'front', 'first kind', 'acc_5', 'front', 'front', 'first kind', 'front', 'front'])
})

test('an intake looks at the kinds again at once where some have more events', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  const read = await batches(intakes, [
    [atFront, 100],
    [byKind(null, ['acc_1']), 20],
    [atFront, 20],
    [byKind(null), 20],
    [atFront, 20],
    [atFront, 79],
    [atFront, 1],
  ])
  expect(read).toEqual(['front', 'first kind', 'front', 'first kind', 'front', 'front', 'front'])
})

test('an intake has the front read after a batch by kind that failed', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  await batch(intakes, atFront, 100)
  {
    using failing = await intakes.open()
    expect(failing.reading.from).toBe('kinds')
  }
  expect(await batch(intakes, atFront, 100)).toBe('front')
  expect(await batch(intakes, byKind(null))).toBe('first kind')
})

test('an intake gives the first events as much time as all kinds together', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  const read = await batches(intakes, [
    [atFront, 100],
    [byKind('acc_1'), 30],
    [atFront, 29],
    [atFront, 1],
    [byKind(null), 300],
    [atFront, 299],
    [atFront, 1],
    [byKind(null), 0],
  ])
  expect(read).toEqual(['front', 'first kind', 'front', 'front', 'acc_1', 'front', 'front', 'first kind'])
})

test('an intake waits for room 100 ms at most, however long the batches by kind took', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  await batch(intakes, atFront, 100)
  await batch(intakes, byKind(null), 5_000)
  const full = await intakes.open()
  fill(full, flow)
  full.destinationOf(kindOf(flow), [flow])
  full.fill(atFront)
  scheduler.takeInHand(flow, scheduler.mayTakeInHand(flow))
  const opening = intakes.open()
  await vi.advanceTimersByTimeAsync(100)
  expect((await opening).reading).toEqual({ from: 'front' })
})

test('an intake knows after a look at all kinds which accounts have nothing in the outbox', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { scheduler, intakes } = setUp()
  quicken(scheduler, other)
  // An event that is appended before the look has come to the end.
  expect(intakes.isCaughtUp('acc_0')).toBe(false)
  await batch(intakes, atFront, 100)
  await batch(intakes, byKind('acc_1', ['acc_1']), 3_000)
  vi.advanceTimersByTime(3_000)
  const leaving = await intakes.open()
  fill(leaving, other)
  leaving.destinationOf(kindOf(other), [other])
  leaving.fill(byKind(null))
  const accounts = ['acc_0', 'acc_1', other.account, 'acc_3']
  const caughtUp = () => accounts.filter(intakes.isCaughtUp)
  expect(caughtUp()).toEqual(['acc_3'])
  // What it left is still there, and nothing more of the others.
  scheduler.takeInHand(other, scheduler.mayTakeInHand(other))
  vi.advanceTimersByTime(100)
  expect(await batch(intakes, byKind(null))).toBe('first kind')
  expect(caughtUp()).toEqual(['acc_0', 'acc_1', 'acc_3'])
})

test('an intake knows that an event waits which went through the outbox behind the round under way', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  await batch(intakes, atFront, 100)
  await batch(intakes, byKind(null, ['acc_1']))
  await batch(intakes, byKind('acc_5'))
  expect(intakes.isCaughtUp('acc_1')).toBe(false)
  await batch(intakes, byKind(null))
  // No batch has looked at its event.
  expect(intakes.isCaughtUp('acc_1')).toBe(false)
})
