import fc from 'fast-check'
import { expect, test } from 'vitest'
import { quantum, unansweredPlaces } from '../../../server/webhook-delivery/scheduling/deficit-round-robin.ts'
import {
  afterAnswer,
  afterBegin,
  afterSign,
  type FlowLimit,
  isAnswered,
  newFlowLimit,
  patienceMs,
} from '../../../server/webhook-delivery/scheduling/flow-limit.ts'
import { createScheduler } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type {
  FlowName,
  Request,
  RequestEnd,
  SchedulerSettings,
} from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'

/** Requests to a host for flows that are not known to answer: `unasked` and `unanswered` ones (host-ceiling.ts). */
const [unaskedMax, unansweredMax] = [4, 2]
const settings: SchedulerSettings = { places: 16, alpha: 2, flowMax: 8, hostMax: 5, handMax: 20 }

function nameOf(account: number, host: number, path: number): FlowName {
  return { flow: `${account} ${host}/${path}`, account: `${account}`, host: `${host}` }
}

const names = fc.record({ account: fc.nat(3), host: fc.nat(1), path: fc.nat(3) })
/** Its ceiling is what holds up most. */
const namesOfOneHost = fc.record({ account: fc.constant(0), host: fc.constant(0), path: fc.nat(5) })
const ends: fc.Arbitrary<RequestEnd> = fc.oneof(
  fc.record({ kind: fc.constant('answered' as const), latencyMs: fc.nat(5_000) }),
  fc.record({
    kind: fc.constant('congested' as const),
    sign: fc.constantFrom('timed_out' as const, 'connection_failed' as const, 'refused' as const),
  }),
)
type Step =
  | { do: 'offer' | 'hand'; name: { account: number; host: number; path: number }; count: number }
  | { do: 'drain' | 'handBack'; name: { account: number; host: number; path: number } }
  | { do: 'start'; count: number }
  | { do: 'begin' | 'free'; which: number }
  | { do: 'end'; which: number; how: RequestEnd }
  | { do: 'wait'; ms: number }
const stepsOf = (name: typeof names): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      fc.record({
        do: fc.constantFrom('offer' as const, 'hand' as const),
        name,
        count: fc.integer({ min: 1, max: 6 }),
      }),
      fc.record({ do: fc.constantFrom('drain' as const, 'handBack' as const), name }),
      fc.record({ do: fc.constant('start' as const), count: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ do: fc.constantFrom('begin' as const, 'free' as const), which: fc.nat() }),
      fc.record({ do: fc.constant('end' as const), which: fc.nat(), how: ends }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.nat(8_000) }),
    ),
    { minLength: 50, maxLength: 300 },
  )
const steps = fc.oneof(stepsOf(names), stepsOf(namesOfOneHost))

type Known = { request: Request; name: FlowName; silentAt: number; number: number }
type Limits = Map<string, FlowLimit | undefined>

/** Counts on its own what is held, and compares at each start. */
function play(list: readonly Step[]): { limits: Limits; expected: Limits } {
  const scheduler = createScheduler(settings)
  /** The expected limits by the rules alone, each from the requests of its own flow. */
  const expected: Limits = new Map()
  const max = settings.flowMax
  const known = new Set<Known>()
  const byFlow = new Map<string, FlowName>()
  const work = new Map<string, number>()
  let now = 0

  const held = (isMeant: (one: Known) => boolean) => [...known].filter(isMeant).length
  const isOver = ({ request }: Known) => request.state === 'settling'
  const countedOf = (flow: string) =>
    held(({ name, request }) => name.flow === flow && ['reserved', 'running'].includes(request.state))
  const heldOf = (account: string) => held(({ name }) => name.account === account)
  const heldOfHost = (account: string, host: string) =>
    held((one) => one.name.account === account && one.name.host === host && !isOver(one))
  const expectedOf = ({ name }: Known) => expected.get(name.flow) ?? newFlowLimit(max)
  const isKnownToAnswer = (flow: string) => isAnswered(expected.get(flow) ?? newFlowLimit(max))
  const maxOfHost = (flow: string) => {
    if (isKnownToAnswer(flow)) return Number.POSITIVE_INFINITY
    return countedOf(flow) === 0 ? unaskedMax : unansweredMax
  }
  const unansweredOf = (isMeant: (name: FlowName) => boolean) =>
    held((one) => isMeant(one.name) && !isOver(one) && !isKnownToAnswer(one.name.flow))
  const shareOfUnanswered = () => settings.alpha * (unansweredPlaces(settings.places) - unansweredOf(() => true))
  const unansweredOfHost = (account: string, host: string) =>
    unansweredOf((name) => name.account === account && name.host === host)

  function expectEnd(one: Known, how: RequestEnd): void {
    const { number, request } = one
    if (request.state !== 'running' && request.state !== 'silent') return
    const running = held((other) => other.name.flow === one.name.flow && other.request.state === 'running')
    const counted = running + (request.state === 'silent' ? 1 : 0)
    const limit = expectedOf(one)
    const next =
      how.kind === 'answered'
        ? afterAnswer(limit, { number, latencyMs: how.latencyMs, counted, max, isBusy: false })
        : afterSign(limit, { number, sign: how.sign, max })
    expected.set(one.name.flow, next)
  }

  function expectSilences(): void {
    const silent = [...known].filter(({ request, silentAt }) => request.state === 'running' && silentAt <= now)
    for (const one of silent.toSorted((a, b) => a.silentAt - b.silentAt || a.number - b.number)) {
      expected.set(one.name.flow, afterSign(expectedOf(one), { number: one.number, sign: 'silent', max }))
    }
  }

  const some = (which: number) => [...known][which % Math.max(1, known.size)]
  const addWork = (flow: string, by: number) => work.set(flow, (work.get(flow) ?? 0) + by)

  function start(): boolean {
    const request = scheduler.next()
    if (request === null) return false
    const { account, flow } = request
    const { host } = byFlow.get(flow) as FlowName
    const counted = countedOf(flow)
    expect(heldOf(account)).toBeLessThan(settings.alpha * (settings.places - known.size))
    expect(heldOfHost(account, host)).toBeLessThan(settings.hostMax)
    expect(unansweredOfHost(account, host)).toBeLessThan(maxOfHost(flow))
    if (!isKnownToAnswer(flow)) {
      expect(unansweredOf((name) => name.account === account)).toBeLessThan(shareOfUnanswered())
    }
    expect(counted).toBeLessThan(scheduler.view(flow)?.limit.limit ?? 0)
    expect(work.get(flow)).toBeGreaterThan(0)
    addWork(flow, -1)
    known.add({ request, name: byFlow.get(flow) as FlowName, silentAt: Number.POSITIVE_INFINITY, number: -1 })
    return true
  }

  for (const step of list) {
    switch (step.do) {
      case 'offer':
      case 'hand': {
        const name = nameOf(step.name.account, step.name.host, step.name.path)
        byFlow.set(name.flow, name)
        const room = scheduler.mayTakeInHand(name)
        if (expected.get(name.flow)?.phase === 'stalled') expect(room).toBe(0)
        const count = step.do === 'offer' ? step.count : Math.min(step.count, room)
        if (step.do === 'offer') scheduler.offer(name, count)
        else scheduler.takeInHand(name, count)
        addWork(name.flow, count)
        break
      }
      case 'drain': {
        const { flow } = nameOf(step.name.account, step.name.host, step.name.path)
        const waiting = scheduler.view(flow)?.waiting ?? 0
        scheduler.drained(flow, scheduler.offers(flow))
        addWork(flow, -waiting)
        break
      }
      case 'handBack': {
        const name = nameOf(step.name.account, step.name.host, step.name.path)
        const inHand = scheduler.view(name.flow)?.inHand ?? 0
        if (inHand > 0) scheduler.takeInHand(name, -inHand)
        addWork(name.flow, -inHand)
        break
      }
      case 'start':
        for (let count = 0; count < step.count && start(); count++);
        break
      case 'begin': {
        // Most of those that are reserved, as when a claim has come back.
        for (const one of [...known].slice(step.which % 3)) {
          if (one.request.state !== 'reserved') continue
          one.number = expectedOf(one).begun
          one.silentAt = now + patienceMs(expectedOf(one))
          expected.set(one.name.flow, afterBegin(expectedOf(one)))
          expect(now + scheduler.begin(one.request, now)).toBe(one.silentAt)
        }
        break
      }
      case 'end': {
        const one = some(step.which)
        if (one === undefined) break
        expectEnd(one, step.how)
        scheduler.end(one.request, step.how)
        break
      }
      case 'free': {
        const one = some(step.which)
        if (one === undefined) break
        scheduler.free(one.request)
        scheduler.free(one.request)
        known.delete(one)
        break
      }
      case 'wait':
        now += step.ms
        expectSilences()
        scheduler.elapse(now)
        for (const { request, silentAt } of known) expect(request.state === 'running' && silentAt <= now).toBe(false)
        break
    }
    expect(scheduler.held()).toBe(known.size)
    const inHand = [...byFlow.keys()].reduce((sum, flow) => sum + (scheduler.view(flow)?.inHand ?? 0), 0)
    expect(inHand).toBeLessThanOrEqual(settings.handMax)
  }
  // Whatever may start does: nobody who has work and room is forgotten.
  while (start());
  for (const [flow, left] of work) {
    if (left === 0) continue
    const { account, host } = byFlow.get(flow) as FlowName
    const isHeldUp =
      known.size >= settings.places ||
      countedOf(flow) >= Math.floor(expected.get(flow)?.limit ?? newFlowLimit(max).limit) ||
      heldOfHost(account, host) >= settings.hostMax ||
      unansweredOfHost(account, host) >= maxOfHost(flow) ||
      heldOf(account) >= settings.alpha * (settings.places - known.size) ||
      (!isKnownToAnswer(flow) && unansweredOf((name) => name.account === account) >= shareOfUnanswered())
    expect(isHeldUp).toBe(true)
  }
  for (const flow of byFlow.keys()) if (!expected.has(flow)) expected.set(flow, newFlowLimit(max))
  return { expected, limits: new Map([...expected.keys()].map((flow) => [flow, scheduler.view(flow)?.limit])) }
}

test('the scheduler has the limit of a flow grow by what is in flight, not by what is reserved for nothing', () => {
  const scheduler = createScheduler({ ...settings, places: 100 })
  const name = nameOf(0, 0, 0)
  for (let round = 0; round < 20; round++) {
    scheduler.offer(name, 3)
    const [first, ...others] = [scheduler.next(), scheduler.next(), scheduler.next()]
    if (first === undefined || first === null) throw new Error('nothing may start')
    scheduler.begin(first, round)
    scheduler.end(first, { kind: 'answered', latencyMs: 5 })
    for (const request of [first, ...others]) if (request !== null) scheduler.free(request)
  }
  expect(scheduler.view(name.flow)?.limit.limit).toBe(4)
})

test('the scheduler starts nothing beyond a threshold, a ceiling or a limit, and forgets nobody', () => {
  fc.assert(
    fc.property(steps, (list) => {
      play(list)
    }),
    { numRuns: 300 },
  )
})

test('the scheduler begins a head that may start within one round of turns for every eight flows of its account', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 60 }), (others, ownFlows) => {
      const scheduler = createScheduler({ ...settings, places: 100_000, hostMax: 100_000 })
      for (let account = 1; account <= others; account++) {
        for (let path = 0; path < 3; path++) {
          scheduler.offer(nameOf(account, 0, path), 1_000_000)
        }
      }
      // They go round for some time.
      for (let count = 0; count < others * 5; count++) {
        const request = scheduler.next()
        if (request === null) break
        scheduler.begin(request, 0)
        scheduler.end(request, { kind: 'answered', latencyMs: 1 })
      }
      for (let path = 0; path < ownFlows; path++) scheduler.offer(nameOf(0, 0, path), 1)
      const bound = (others + 1) * quantum * Math.ceil(ownFlows / quantum)
      const waiting = new Set(Array.from({ length: ownFlows }, (_, path) => nameOf(0, 0, path).flow))
      for (let count = 0; count < bound && waiting.size > 0; count++) {
        const request = scheduler.next()
        if (request === null) break
        waiting.delete(request.flow)
        scheduler.begin(request, 0)
        scheduler.end(request, { kind: 'answered', latencyMs: 1 })
      }
      expect(waiting.size).toBe(0)
    }),
    { numRuns: 30 },
  )
})

test('the scheduler gives an account no larger a share for more webhooks, URLs or hosts', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 20 }), (flows, hosts) => {
      const scheduler = createScheduler({ ...settings, places: 64, alpha: 4, flowMax: 64, hostMax: 64 })
      for (let path = 0; path < flows; path++) {
        scheduler.offer(nameOf(0, path % hosts, path), 1_000_000)
      }
      scheduler.offer(nameOf(1, 0, 0), 1_000_000)
      const inFlight: Request[] = []
      const starts = new Map<string, number>()
      for (let count = 0; count < 4_000; count++) {
        for (let request = scheduler.next(); request !== null; request = scheduler.next()) {
          scheduler.begin(request, count)
          inFlight.push(request)
          starts.set(request.account, (starts.get(request.account) ?? 0) + 1)
        }
        // All take as long.
        const oldest = inFlight.shift()
        if (oldest === undefined) throw new Error('nothing is in flight')
        scheduler.end(oldest, { kind: 'answered', latencyMs: 10 })
        scheduler.free(oldest)
      }
      const [hostile = 0, calm = 0] = [starts.get('0'), starts.get('1')]
      expect(hostile).toBeLessThanOrEqual(calm * 1.15)
    }),
    { numRuns: 30 },
  )
})

test('the scheduler has the limit of a flow depend on what is heard of that flow, and on nothing else', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const { limits, expected } = play(list)
      expect(limits).toEqual(expected)
    }),
    { numRuns: 300 },
  )
})

test('the scheduler forgets nothing that was offered while a claim was under way', () => {
  const scheduler = createScheduler(settings)
  const name = nameOf(0, 0, 0)
  scheduler.offer(name, 10)
  const offers = scheduler.offers(name.flow)
  scheduler.offer(name, 1)
  scheduler.drained(name.flow, offers)
  expect(scheduler.next()).not.toBeNull()
  scheduler.drained(name.flow, scheduler.offers(name.flow))
  expect(scheduler.next()).toBeNull()
})

test('the scheduler keeps nothing of flows that were idle for long', () => {
  const scheduler = createScheduler(settings)
  for (let path = 0; path < 1_000; path++) scheduler.offer(nameOf(0, path % 5, path), 1)
  for (let request = scheduler.next(); request !== null; request = scheduler.next()) {
    scheduler.begin(request, 1_000)
    scheduler.end(request, { kind: 'answered', latencyMs: 1 })
    scheduler.free(request)
  }
  scheduler.forgetIdle(1_001)
  expect(scheduler.view(nameOf(0, 0, 0).flow)).toBeNull()
})
