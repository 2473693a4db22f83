import fc from 'fast-check'
import { expect, test } from 'vitest'
import { roomFor } from '../../../server/webhook-delivery/scheduling/dynamic-threshold.ts'
import { initialLimit } from '../../../server/webhook-delivery/scheduling/flow-limit.ts'
import { createScheduler, defaultSettings } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type {
  FlowName,
  Request,
  RequestEnd,
  Scheduler,
} from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'

/*
 * Deliveries that a process takes in hand: they wait in the process, and not in the queue, because they are likely to
 * start within a quarter of a second.
 */

const name: FlowName = { flow: 'a/1', account: 'a', host: 'h' }
const sibling: FlowName = { flow: 'a/2', account: 'a', host: 'h' }
const foreign: FlowName = { flow: 'b/1', account: 'b', host: 'h' }
const quick: RequestEnd = { kind: 'answered', latencyMs: 2 }
const slow: RequestEnd = { kind: 'answered', latencyMs: 5_000 }

/** Has one request of a flow end so. */
function end(scheduler: Scheduler, of: FlowName, how: RequestEnd): void {
  scheduler.offer(of, 1)
  const request = scheduler.next()
  if (request === null) throw new Error('nothing may start')
  scheduler.begin(request, 0)
  scheduler.end(request, how)
  scheduler.free(request)
}

/** Has all requests that a flow may have in flight be silent for too long. */
function stall(scheduler: Scheduler, of: FlowName): void {
  scheduler.offer(of, initialLimit)
  for (let request = scheduler.next(); request !== null; request = scheduler.next()) scheduler.begin(request, 0)
  scheduler.elapse(60_000)
}

test('a delivery that is about to be made is in hand while there is room, also of a flow that nothing is known of', () => {
  const scheduler = createScheduler(defaultSettings)
  expect(scheduler.destinationOf(name)).toBe('hand')
  expect(scheduler.mayTakeInHand(name)).toBe(initialLimit)
  scheduler.takeInHand(name, initialLimit - 1)
  expect(scheduler.destinationOf(name)).toBe('hand')
})

test('a delivery that is about to be made is in the queue when nobody knows how quick its endpoint is, and its flow has what it may have', () => {
  const scheduler = createScheduler(defaultSettings)
  scheduler.takeInHand(name, initialLimit)
  expect(scheduler.destinationOf(name)).toBe('queue')
})

test('a delivery that is about to be made is in the queue of a slow endpoint, and in hand or there later of a quick one', () => {
  const scheduler = createScheduler(defaultSettings)
  end(scheduler, name, slow)
  scheduler.takeInHand(name, scheduler.mayTakeInHand(name))
  expect(scheduler.destinationOf(name)).toBe('queue')
  end(scheduler, foreign, quick)
  expect(scheduler.destinationOf(foreign)).toBe('hand')
  scheduler.takeInHand(foreign, scheduler.mayTakeInHand(foreign))
  expect(scheduler.destinationOf(foreign)).toBe('later')
})

test('a delivery that is about to be made is never before what waits in the queue', () => {
  const scheduler = createScheduler(defaultSettings)
  scheduler.offer(name, 1)
  expect(scheduler.destinationOf(name)).toBe('queue')
  expect(scheduler.next()?.flow).toBe(name.flow)
  end(scheduler, foreign, quick)
  scheduler.offer(foreign, 1)
  expect(scheduler.mayTakeInHand(foreign)).toBeGreaterThan(0)
  expect(scheduler.destinationOf(foreign)).toBe('later')
})

test('a delivery that is about to be made is in the queue while nobody answers, however quick the endpoint was', () => {
  const scheduler = createScheduler(defaultSettings)
  end(scheduler, name, quick)
  stall(scheduler, name)
  scheduler.drained(name.flow, scheduler.offers(name.flow))
  expect(scheduler.mayTakeInHand(name)).toBe(0)
  expect(scheduler.destinationOf(name)).toBe('queue')
})

test('a delivery that is about to be made is in the queue while its account has no place left but those that hang, and not while they are quick', () => {
  const scheduler = createScheduler(defaultSettings)
  const flowsOf = (host: string) =>
    Array.from({ length: 205 }, (_, count) => ({ flow: `a/${host}/${count}`, account: 'a', host: `${host}${count}` }))
  for (const known of [name, ...flowsOf('hangs'), ...flowsOf('works')]) end(scheduler, known, quick)
  /** Has the account hold all the places it may. Returns the requests that this began. */
  function fill(host: string): Request[] {
    const started: Request[] = []
    for (const flow of flowsOf(host)) scheduler.offer(flow, initialLimit)
    for (let request = scheduler.next(); request !== null; request = scheduler.next()) started.push(request)
    for (const request of started) scheduler.begin(request, 60_000)
    scheduler.offer(name, 1)
    expect(scheduler.view(name.flow)?.waitsFor).toBe('account_share')
    return started
  }
  const started = fill('hangs')
  expect(scheduler.destinationOf(name)).toBe('later')
  scheduler.elapse(120_000)
  expect(scheduler.destinationOf(name)).toBe('queue')
  // Half of them are answered after all.
  for (const request of started.slice(0, started.length / 2 + 1)) {
    scheduler.end(request, quick)
    scheduler.free(request)
  }
  fill('works')
  expect(scheduler.destinationOf(name)).toBe('later')
})

test('a delivery that is about to be made is in the queue when its account has all that it may have in hand, and of others in hand all the same', () => {
  const scheduler = createScheduler({ ...defaultSettings, handMax: 10 })
  // Fewer than four times those that are free.
  scheduler.takeInHand(name, 4)
  scheduler.takeInHand(sibling, 4)
  const third = { ...name, flow: 'a/3' }
  expect(scheduler.destinationOf(third)).toBe('queue')
  expect(scheduler.destinationOf(foreign)).toBe('hand')
})

test('what is expected in hand counts as if it were, for its flow and its account, and starts nothing', () => {
  const scheduler = createScheduler(defaultSettings)
  scheduler.expectInHand(name, 3)
  expect(scheduler.mayTakeInHand(name)).toBe(initialLimit - 3)
  expect(scheduler.mayTakeInHand(sibling)).toBe(initialLimit)
  expect(scheduler.next()).toBeNull()
  scheduler.expectInHand(name, -3)
  expect(scheduler.mayTakeInHand(name)).toBe(initialLimit)
})

test('what is expected in hand keeps its flow from being forgotten', () => {
  const scheduler = createScheduler(defaultSettings)
  end(scheduler, name, quick)
  scheduler.expectInHand(name, 1)
  scheduler.forgetIdle(Number.POSITIVE_INFINITY)
  expect(scheduler.view(name.flow)).not.toBeNull()
  scheduler.expectInHand(name, -1)
  scheduler.forgetIdle(Number.POSITIVE_INFINITY)
  expect(scheduler.view(name.flow)).toBeNull()
})

test('what is expected in hand leaves no trace when it is given back, whatever was taken in hand and started meanwhile', () => {
  const names = [name, sibling, foreign]
  const changes = fc.array(
    fc.record({
      do: fc.constantFrom('expect' as const, 'fill' as const, 'give up' as const, 'start' as const),
      which: fc.nat(names.length - 1),
      count: fc.integer({ min: 1, max: 6 }),
    }),
    { minLength: 5, maxLength: 80 },
  )
  fc.assert(
    fc.property(changes, (list) => {
      const settings = { ...defaultSettings, handMax: 8 }
      const scheduler = createScheduler(settings)
      const expected = new Map(names.map((of) => [of, 0]))
      const inHand = new Map(names.map((of) => [of, 0]))
      const sum = (counts: ReadonlyMap<FlowName, number>, account?: string) =>
        [...counts].reduce(
          (all, [of, count]) => (account === undefined || of.account === account ? all + count : all),
          0,
        )
      const add = (counts: Map<FlowName, number>, of: FlowName, by: number) =>
        counts.set(of, (counts.get(of) ?? 0) + by)

      function check(): void {
        for (const of of names) {
          const own = (expected.get(of) ?? 0) + (inHand.get(of) ?? 0)
          const [held, taken] = [of.account, undefined].map((account) => sum(expected, account) + sum(inHand, account))
          const room = roomFor({ places: settings.handMax, alpha: settings.alpha }, held ?? 0, taken ?? 0)
          expect(scheduler.mayTakeInHand(of)).toBe(Math.max(0, Math.min(initialLimit - own, room)))
        }
      }

      for (const change of list) {
        const of = names[change.which] as FlowName
        const left = expected.get(of) ?? 0
        switch (change.do) {
          case 'expect': {
            const count = Math.min(change.count, scheduler.mayTakeInHand(of))
            scheduler.expectInHand(of, count)
            add(expected, of, count)
            break
          }
          case 'fill':
          case 'give up':
            // All that was expected, of which as many have come.
            scheduler.expectInHand(of, -left)
            expected.set(of, 0)
            if (change.do === 'give up') break
            scheduler.takeInHand(of, Math.min(left, change.count))
            add(inHand, of, Math.min(left, change.count))
            break
          case 'start':
            for (let request = scheduler.next(); request !== null; request = scheduler.next()) {
              expect(request.from).toBe('hand')
              add(inHand, scheduler.nameOf(request), -1)
              scheduler.free(request)
            }
        }
        check()
      }
    }),
  )
})

test('a flow is to be refilled once half of what it may have in hand has started, and only while more waits', () => {
  const scheduler = createScheduler(defaultSettings)
  expect(scheduler.isToRefill(name)).toBe(false)
  scheduler.offer(name, 10)
  scheduler.takeInHand(name, 3)
  expect(scheduler.isToRefill(name)).toBe(false)
  const started = scheduler.next()
  expect(started?.from).toBe('hand')
  expect(scheduler.isToRefill(name)).toBe(false)
  scheduler.next()
  expect(scheduler.isToRefill(name)).toBe(true)
  // A claim for it is under way.
  scheduler.expectInHand(name, scheduler.mayTakeInHand(name))
  expect(scheduler.isToRefill(name)).toBe(false)
  scheduler.expectInHand(name, -3)
  expect(scheduler.isToRefill(name)).toBe(true)
  scheduler.drained(name.flow, scheduler.offers(name.flow))
  expect(scheduler.isToRefill(name)).toBe(false)
})

test('a flow is named by each request of it as it was when it was offered', () => {
  const scheduler = createScheduler(defaultSettings)
  for (const of of [name, sibling, foreign]) scheduler.offer(of, 1)
  const named = [scheduler.next(), scheduler.next(), scheduler.next()].map((request) =>
    request === null ? null : scheduler.nameOf(request),
  )
  expect(named).toEqual(expect.arrayContaining([name, sibling, foreign]))
  expect(named.map((of) => of?.flow)).toEqual([...new Set(named.map((of) => of?.flow))])
})
