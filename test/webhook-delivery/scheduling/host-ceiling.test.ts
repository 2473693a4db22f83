import { expect, test } from 'vitest'
import { createScheduler } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type {
  FlowName,
  Request,
  Scheduler,
  SchedulerSettings,
} from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'

const settings: SchedulerSettings = { places: 16, alpha: 2, flowMax: 8, hostMax: 5, handMax: 20 }
/** Of requests to a host, for a flow that is not known to answer and has some in flight. */
const unansweredMax = 2

/** A flow of the one host. */
function nameOf(path: number): FlowName {
  return { flow: `${path}`, account: 'account', host: 'host' }
}

/** A scheduler that has heard of the first endpoints of a host. */
function withAnswered(count: number): { scheduler: Scheduler; flows: FlowName[] } {
  const scheduler = createScheduler(settings)
  const flows = Array.from({ length: count }, (_, path) => nameOf(path))
  for (const name of flows) {
    scheduler.offer(name, 1)
    const request = scheduler.next() as Request
    scheduler.begin(request, 0)
    scheduler.end(request, { kind: 'answered', latencyMs: 5 })
    scheduler.free(request)
  }
  return { scheduler, flows }
}

test('the ceiling of a host lets the next flow of a host start when the one before it has no work any more', () => {
  const { scheduler, flows } = withAnswered(3)
  const [busy, dry, waiting] = flows as [FlowName, FlowName, FlowName]
  scheduler.offer(busy, 3)
  scheduler.offer(dry, 2)
  const started = Array.from({ length: settings.hostMax }, () => scheduler.next() as Request)
  // Both wait for the ceiling.
  scheduler.offer(dry, 1)
  scheduler.offer(waiting, 1)
  expect(scheduler.next()).toBeNull()
  for (const request of started.slice(0, 1)) scheduler.free(request)
  scheduler.drained(dry.flow, scheduler.offers(dry.flow))
  expect(scheduler.next()?.flow).toBe(waiting.flow)
})

test('the ceiling of a host lets the next flow of a host start when the limit of the one before it has become smaller', () => {
  const { scheduler, flows } = withAnswered(3)
  const [busy, shrinking, waiting] = flows as [FlowName, FlowName, FlowName]
  scheduler.offer(busy, 2)
  scheduler.offer(shrinking, 3)
  const started = Array.from({ length: settings.hostMax }, () => scheduler.next() as Request)
  for (const request of started) scheduler.begin(request, 0)
  // Both wait for the ceiling.
  scheduler.offer(shrinking, 1)
  scheduler.offer(waiting, 1)
  expect(scheduler.next()).toBeNull()
  // Two are left in flight, and no more than two may be.
  const one = started.find(({ flow }) => flow === shrinking.flow) as Request
  scheduler.end(one, { kind: 'congested', sign: 'timed_out' })
  expect(scheduler.next()?.flow).toBe(waiting.flow)
})

test('the ceiling of a host leaves a part to the flows whose endpoints answer, and a part to the others', () => {
  const { scheduler, flows } = withAnswered(1)
  const [answered] = flows as [FlowName]
  const hanging = nameOf(1)
  for (const name of [hanging, answered]) scheduler.offer(name, 4)
  const started = Array.from({ length: settings.hostMax }, () => scheduler.next() as Request)
  for (const request of started) scheduler.begin(request, 0)
  const ofAnswered = started.filter(({ flow }) => flow === answered.flow)
  expect(ofAnswered).toHaveLength(settings.hostMax - unansweredMax)
  expect(scheduler.next()).toBeNull()
  // A request that is over makes room for the others of its own part.
  scheduler.free(ofAnswered[0] as Request)
  expect(scheduler.next()?.flow).toBe(answered.flow)
  scheduler.free(started.find(({ flow }) => flow === hanging.flow) as Request)
  expect(scheduler.next()?.flow).toBe(hanging.flow)
})

test('the ceiling of a host has a new URL asked beside one that hangs on all it may, but not beside many', () => {
  const scheduler = createScheduler(settings)
  const names = Array.from({ length: 6 }, (_, path) => nameOf(path))
  const flows = names.map((name) => {
    scheduler.offer(name, 4)
    const started: string[] = []
    for (let request = scheduler.next(); request !== null; request = scheduler.next()) started.push(request.flow)
    return started
  })
  expect(flows).toEqual([['0', '0'], ['1'], ['2'], [], [], []])
  expect(scheduler.view('3')?.waitsFor).toBe('host_limit')
})

test('the ceiling of a host counts what is in flight for the other part as soon as an endpoint answers, or answers no more', () => {
  const { scheduler, flows } = withAnswered(1)
  const [first, second] = [flows[0] as FlowName, nameOf(1)]
  scheduler.offer(first, 4)
  const started = Array.from({ length: 4 }, () => scheduler.next() as Request)
  for (const request of started) scheduler.begin(request, 0)
  scheduler.elapse(60_000)
  expect(scheduler.view(first.flow)?.limit.phase).toBe('stalled')
  // Its four are as many as may be.
  scheduler.offer(second, 1)
  expect(scheduler.next()).toBeNull()
  scheduler.end(started[0] as Request, { kind: 'answered', latencyMs: 5 })
  expect(scheduler.next()?.flow).toBe(second.flow)
})
