import { afterEach, expect, test, vi } from 'vitest'
import { initialLimit } from '../../../server/webhook-delivery/scheduling/flow-limit.ts'
import type { KindLimit } from '../../../server/webhook-delivery/scheduling/intake.ts'
import type { FlowName } from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'
import { atEnd, eventOf, fill, flow, kindOf, ofBoth, other, quicken, setUp, stall } from './intake-setup.ts'

afterEach(() => {
  vi.useRealTimers()
})

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

test('an intake has limits of a thousand kinds at most, and of ten thousand flows of them', async () => {
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
  expect(await kinds()).toEqual(['a', 'b'])
  expect(intakes.isCaughtUp('c')).toBe(false)
})

test('an intake keeps the limits it has where more than a thousand kinds have no room', async () => {
  const { scheduler, intakes } = setUp()
  quicken(scheduler, flow)
  using intake = await intakes.open()
  fill(intake, flow)
  for (let count = 0; count < 1_001; count++) intake.destinationOf({ ...kindOf(flow), type: `${count}` }, [flow])
  const { limits } = await intakes.open()
  expect(limits.map(({ type }) => type)).toEqual([kindOf(flow).type, ...Array.from({ length: 999 }, (_, n) => `${n}`)])
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
