import { afterEach, expect, test, vi } from 'vitest'
import { initialLimit } from '../../../server/webhook-delivery/scheduling/flow-limit.ts'
import {
  createIntakes,
  type EventKind,
  type KindLimit,
  type Reservation,
} from '../../../server/webhook-delivery/scheduling/intake.ts'
import { createScheduler, defaultSettings } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type { FlowName } from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'
import type { LeasedEvent } from '../../../server/webhook-delivery/settlement/leased-event.ts'

const flow: FlowName = { flow: '1', account: 'a', host: 'h' }
const other: FlowName = { flow: '2', account: 'b', host: 'h' }

function setUp() {
  const scheduler = createScheduler(defaultSettings)
  const take = vi.fn<(events: readonly LeasedEvent[]) => void>()
  return { scheduler, take, intakes: createIntakes({ scheduler, take }) }
}

/** Has a flow answer quickly, so that it takes a hundred in hand and more. */
function quicken(scheduler: ReturnType<typeof setUp>['scheduler'], name: FlowName): void {
  scheduler.offer(name, 1)
  const request = scheduler.next()
  if (request === null) throw new Error('nothing may start')
  scheduler.begin(request, 0)
  scheduler.end(request, { kind: 'answered', latencyMs: 1 })
  scheduler.free(request)
}

/** Has a flow hang: nobody answers. */
function stall(scheduler: ReturnType<typeof setUp>['scheduler'], name: FlowName): void {
  scheduler.offer(name, 1)
  const request = scheduler.next()
  if (request === null) throw new Error('nothing may start')
  scheduler.begin(request, 0)
  scheduler.elapse(60_000)
}

/** An event with a delivery for each flow. */
function eventOf(...names: FlowName[]): LeasedEvent {
  const deliveries = names.map(({ flow: number, account, host }) => ({
    accountId: account,
    webhook: { flow: Number(number), host },
  }))
  return { id: 'evt_1', type: 'contact.deleted', createdAt: new Date(0), deliveries: deliveries as never }
}

afterEach(() => {
  vi.useRealTimers()
})

/** The kind of the events of a flow. */
function kindOf({ account }: FlowName): EventKind {
  return { accountId: account, mode: 'live', type: 'contact.deleted' }
}

/** A kind of the same account whose events are for others too. */
const ofBoth: EventKind = { accountId: 'a', mode: 'live', type: 'contact.created' }

/** Reserves all there is room for. Returns how many. */
function fill(intake: Reservation, name: FlowName): number {
  let count = 0
  while (intake.destinationOf(kindOf(name), [name]) === 'hand') count += 1
  return count
}

const atEnd = { leased: [], looked: { from: 'front', isAll: true, kinds: [] }, rest: false } as const

test('an intake has room for as many of a flow as are likely to start soon, and less for the next until it is disposed of', async () => {
  const { intakes } = setUp()
  {
    using intake = await intakes.open()
    expect(fill(intake, flow)).toBe(initialLimit)
    using next = await intakes.open()
    expect(fill(next, flow)).toBe(0)
    expect(fill(next, other)).toBe(initialLimit)
  }
  using intake = await intakes.open()
  expect(fill(intake, flow)).toBe(initialLimit)
})

test('an intake takes all deliveries of an event or none', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  using intake = await intakes.open()
  fill(intake, flow)
  expect(intake.destinationOf(kindOf(other), [other, flow])).not.toBe('hand')
  expect(fill(intake, other)).toBe(initialLimit)
})

test('an intake leaves an event for later only while no flow of it is idle that has room', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  quicken(scheduler, other)
  using intake = await intakes.open()
  fill(intake, flow)
  expect(intake.destinationOf(ofBoth, [flow, other])).toBe('queue')
  expect(intake.destinationOf(ofBoth, [other, flow])).toBe('queue')
  expect(intake.destinationOf(kindOf(other), [other])).toBe('hand')
  expect(intake.destinationOf(ofBoth, [flow, other])).toBe('later')
  fill(intake, other)
  expect(intake.destinationOf(ofBoth, [flow, other])).toBe('later')
})

test('an intake puts an event into the queue for which there is no room though none of its flows is behind', async () => {
  const { scheduler, intakes } = setUp()
  const copies = Array.from({ length: initialLimit + 2 }, () => flow)
  scheduler.takeInHand(flow, 1)
  using intake = await intakes.open()
  expect(intake.destinationOf(kindOf(flow), copies)).toBe('queue')
  expect(intakes.takeNow(eventOf(...copies))).toBe(false)
  intake.fill({ ...atEnd, rest: true })
})

test('an intake puts an event into the queue when one of its flows is slow, and another has no room', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  const stalled = { flow: '3', account: 'c', host: 'h' }
  stall(scheduler, stalled)
  using intake = await intakes.open()
  fill(intake, flow)
  expect(intake.destinationOf(ofBoth, [flow, stalled])).toBe('queue')
  expect(intake.destinationOf(ofBoth, [stalled, flow])).toBe('queue')
})

test('an intake reads all of a kind it left for later once one of its flows is idle', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  quicken(scheduler, other)
  scheduler.offer(flow, 1)
  scheduler.takeInHand(other, 1)
  {
    using intake = await intakes.open()
    expect(intake.destinationOf(kindOf(flow), [flow, other])).toBe('later')
    intake.fill({ ...atEnd, rest: true })
  }
  {
    using intake = await intakes.open()
    expect(intake.limits).toEqual([{ ...kindOf(flow), max: 0 }])
    expect(intake.destinationOf(kindOf(flow), [flow, other])).toBe('later')
    intake.fill({ ...atEnd, rest: true })
  }
  const waiting = intakes.open()
  scheduler.takeInHand(other, -1)
  intakes.wake()
  using intake = await waiting
  expect(intake.limits).toEqual([{ ...kindOf(flow), max: Number.MAX_SAFE_INTEGER }])
  expect(intake.destinationOf(kindOf(flow), [flow, other])).toBe('queue')
})

test('an intake forgets the kinds it left for later rather than more than ten thousand flows of them', async () => {
  const { scheduler, intakes } = setUp()
  const many = Array.from({ length: 9_999 }, (_, n): FlowName => ({ flow: `${n + 10}`, account: 'a', host: `h${n}` }))
  for (const name of [...many, other]) quicken(scheduler, name)
  for (const name of [...many, other]) scheduler.offer(name, 1)
  const kinds = async () => (await intakes.open()).limits.map(({ accountId }) => accountId)
  using intake = await intakes.open()
  expect(intake.destinationOf(kindOf(flow), many)).toBe('later')
  expect(intake.destinationOf(kindOf(other), [other])).toBe('later')
  expect(await kinds()).toEqual(['a', 'b'])
  const another = { ...other, account: 'c' }
  expect(intake.destinationOf(kindOf(another), [another])).toBe('later')
  expect(await kinds()).toEqual(['c'])
})

test('an intake leaves for later what is of a quick flow, and puts into the queue what is of another', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  const stalled = { flow: '3', account: 'c', host: 'h' }
  stall(scheduler, stalled)
  using intake = await intakes.open()
  fill(intake, flow)
  fill(intake, other)
  expect(intake.destinationOf(kindOf(flow), [flow])).toBe('later')
  expect(intake.destinationOf(kindOf(other), [other])).toBe('queue')
  expect(intake.destinationOf(kindOf(stalled), [stalled])).toBe('queue')
})

/** The first events of the outbox, behind which there are more. */
const atFront = { leased: [], looked: { from: 'front', isAll: false, kinds: [] }, rest: true } as const

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

test('an intake looks at all kinds every 100 ms while more events wait than a batch looks at', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  const read: string[] = []
  read.push(await batch(intakes, atFront, 99))
  read.push(await batch(intakes, atFront, 1))
  read.push(await batch(intakes, byKind('acc_5')))
  read.push(await batch(intakes, byKind(null)))
  vi.advanceTimersByTime(99)
  read.push(await batch(intakes, atFront))
  vi.advanceTimersByTime(1)
  read.push(await batch(intakes, byKind(null)))
  read.push(await batch(intakes, atEnd))
  vi.advanceTimersByTime(100)
  read.push(await batch(intakes, atEnd))
  expect(read).toEqual(['front', 'front', 'first kind', 'acc_5', 'front', 'first kind', 'front', 'front'])
})

test('an intake gives no turn of its own to a kind at the front', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  await batch(intakes, { ...atFront, looked: { ...atFront.looked, kinds: [kindOf(flow)] } }, 100)
  const intake = await intakes.open()
  expect(intake).toMatchObject({ reading: { from: 'kinds' }, limits: [{ ...kindOf(flow), max: 0 }] })
  intake.fill(byKind(null))
  expect(intakes.isCaughtUp(flow.account)).toBe(false)
  expect(intakes.isCaughtUp(other.account)).toBe(true)
  const { limits, reading } = await intakes.open()
  expect({ limits, reading }).toEqual({ limits: [], reading: { from: 'front' } })
})

test('an intake gives the first events as much time as all kinds together', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { intakes } = setUp()
  const read: string[] = []
  read.push(await batch(intakes, atFront, 100))
  read.push(await batch(intakes, byKind('acc_1'), 30))
  read.push(await batch(intakes, atFront, 29))
  read.push(await batch(intakes, atFront, 1))
  read.push(await batch(intakes, byKind(null), 300))
  read.push(await batch(intakes, atFront, 299))
  read.push(await batch(intakes, atFront, 1))
  read.push(await batch(intakes, byKind(null)))
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

test('an intake reads of a kind of which it left events no more than there is room for, until none are left', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  quicken(scheduler, other)
  /** A batch with more events of these flows than there is room for, none of which is taken in the end. */
  async function batch(names: FlowName[], rest: boolean): Promise<readonly KindLimit[]> {
    const intake = await intakes.open()
    for (const name of names) fill(intake, name)
    intake.fill({ ...atEnd, rest })
    return intake.limits
  }
  const room = scheduler.mayTakeInHand(flow)
  expect(await batch([flow, other], true)).toEqual([])
  scheduler.takeInHand(flow, 3)
  const ofFlow = { ...kindOf(flow), max: room - 3 }
  expect(await batch([flow], true)).toEqual([ofFlow, { ...kindOf(other), max: room }])
  vi.advanceTimersByTime(1_001)
  expect(await batch([flow], true)).toEqual([ofFlow])
  expect(intakes.isCaughtUp(flow.account)).toBe(false)
  expect(intakes.isCaughtUp(other.account)).toBe(true)
  const exact = await intakes.open()
  for (let taken = 0; taken < ofFlow.max; taken++) exact.destinationOf(kindOf(flow), [flow])
  exact.fill({ ...atEnd, rest: true })
  expect(await batch([flow], false)).toEqual([ofFlow])
  expect(await batch([], false)).toEqual([])
})

test('an intake says which accounts have nothing in the outbox, once it has seen its end', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  expect(intakes.isCaughtUp('b')).toBe(false)
  const intake = await intakes.open()
  fill(intake, flow)
  intake.destinationOf(kindOf(flow), [flow])
  intake.fill(atEnd)
  expect(intakes.isCaughtUp('a')).toBe(false)
  // It had an event before.
  expect(intakes.isCaughtUp('b')).toBe(false)
  expect(intakes.isCaughtUp('c')).toBe(true)
  vi.advanceTimersByTime(100)
  const next = await intakes.open()
  next.fill(atEnd)
  expect(intakes.isCaughtUp('a')).toBe(true)
  expect(intakes.isCaughtUp('b')).toBe(true)
})

test('an intake takes an event at once where all of its deliveries have room, and else none', () => {
  const { scheduler, intakes, take } = setUp()
  const few = eventOf(flow, other)
  expect(intakes.takeNow(few)).toBe(true)
  expect(take).toHaveBeenCalledWith([few])
  // Deliveries that were taken count themselves: nothing is reserved any more.
  expect(scheduler.mayTakeInHand(flow)).toBe(initialLimit)
  scheduler.takeInHand(flow, initialLimit)
  expect(intakes.takeNow(eventOf(other, flow))).toBe(false)
  expect(scheduler.mayTakeInHand(other)).toBe(initialLimit)
  expect(intakes.isCaughtUp(flow.account)).toBe(false)
})

test('an intake goes on as soon as there is room', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  const first = await intakes.open()
  fill(first, flow)
  first.destinationOf(kindOf(flow), [flow])
  const waiting = intakes.open()
  first[Symbol.dispose]()
  intakes.wake()
  using second = await waiting
  expect(second.reading).toEqual({ from: 'front' })
  expect(second.destinationOf(kindOf(flow), [flow])).toBe('hand')
})

test('an intake puts everything into the queue once it is closed', async () => {
  const { intakes } = setUp()
  using intake = await intakes.open()
  intakes.close()
  expect(intake.destinationOf(kindOf(flow), [flow])).toBe('queue')
  expect(intakes.takeNow(eventOf(flow))).toBe(false)
  expect(intakes.isCaughtUp('a')).toBe(false)
})
