import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  afterAnswer,
  afterBegin,
  afterSign,
  type CongestionSign,
  type FlowLimit,
  hasRoom,
  newFlowLimit,
} from '../../../server/webhook-delivery/scheduling/flow-limit.ts'

const max = 64

/** Requests of a flow that are in flight, by their numbers, and what becomes of them. */
type Play = { state: FlowLimit; inFlight: number[]; ended: number }

const steps = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant({ do: 'begin' as const }) },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(), latencyMs: fc.nat(40_000) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('sign' as const),
        which: fc.nat(),
        sign: fc.constantFrom<CongestionSign>('timed_out', 'connection_failed', 'refused', 'silent', 'slower'),
      }),
    },
  ),
  { maxLength: 400 },
)

function play(list: typeof steps extends fc.Arbitrary<infer T> ? T : never, seen: (play: Play) => void): Play {
  const game: Play = { state: newFlowLimit(max), inFlight: [], ended: -1 }
  for (const step of list) {
    const { inFlight } = game
    if (step.do === 'begin') {
      if (!hasRoom(game.state, inFlight.length)) continue
      inFlight.push(game.state.begun)
      game.state = afterBegin(game.state)
    } else if (inFlight.length > 0) {
      const counted = inFlight.length
      const [number = 0] = inFlight.splice(step.which % counted, 1)
      game.ended = number
      game.state =
        step.do === 'answer'
          ? afterAnswer(game.state, { number, latencyMs: step.latencyMs, counted, max, isBusy: false })
          : afterSign(game.state, { number, sign: step.sign, max })
    }
    seen(game)
  }
  return game
}

/** Keeps a flow busy with an endpoint that answers at once, for so many round trips. */
function recover(from: FlowLimit, roundTrips: number, latencyMs: number, isBusy = false): FlowLimit {
  let state = from
  for (let trip = 0; trip < roundTrips; trip++) {
    const numbers: number[] = []
    while (numbers.length < max && hasRoom(state, numbers.length)) {
      numbers.push(state.begun)
      state = afterBegin(state)
    }
    numbers.forEach((number) => {
      state = afterAnswer(state, { number, latencyMs, counted: numbers.length, max, isBusy })
    })
  }
  return state
}

test('the limit of a flow stays within [1, max] whatever happens', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const { state: last } = play(list, ({ state }) => {
        expect(state.limit).toBeGreaterThanOrEqual(1)
        expect(state.limit).toBeLessThanOrEqual(max)
      })
      expect(recover(last, max, 1).limit).toBeLessThanOrEqual(max)
    }),
  )
})

test('the limit of a flow shrinks at most once a round trip', () => {
  fc.assert(
    fc.property(steps, (list) => {
      let last = newFlowLimit(max)
      let smallerAt = 0
      play(list, ({ state, ended }) => {
        if (state.limit < last.limit) {
          // The request that reduced the limit had begun after the previous reduction.
          expect(ended).toBeGreaterThanOrEqual(smallerAt)
          smallerAt = state.begun
        }
        last = state
      })
    }),
  )
})

test('the limit of a flow is never larger after a sign', () => {
  fc.assert(
    fc.property(steps, fc.constantFrom<CongestionSign>('timed_out', 'refused', 'silent', 'slower'), (list, sign) => {
      const { state } = play(list, () => undefined)
      expect(afterSign(state, { number: state.begun, sign, max }).limit).toBeLessThanOrEqual(state.limit)
    }),
  )
})

test('the limit of a flow recovers after anything: max − 1 round trips of quick answers lead to the most', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 100 }), (list, latencyMs) => {
      const { state } = play(list, () => undefined)
      expect(Math.floor(recover(state, 2 * max, latencyMs).limit)).toBe(max)
    }),
    { numRuns: 50 },
  )
})

test('the limit of a flow doubles each round trip until the first sign, and grows by one after it', () => {
  const limits: number[] = []
  let state = newFlowLimit(max)
  for (let trip = 0; trip < 5; trip++) {
    limits.push(Math.floor(state.limit))
    state = recover(state, 1, 100)
  }
  expect(limits).toEqual([4, 8, 16, 32, 64])
  state = afterSign(state, { number: state.begun, sign: 'timed_out', max })
  expect(state).toMatchObject({ phase: 'additive', limit: 32 })
  state = recover(state, 1, 100)
  expect(state.limit).toBeCloseTo(33, 1)
})

test('the limit of a flow takes no notice of a sign from before it shrank', () => {
  const busy = recover(newFlowLimit(max), 4, 10)
  const once = afterSign({ ...busy, begun: busy.begun + 10 }, { number: busy.begun, sign: 'refused', max })
  for (let number = busy.begun; number < once.begun; number++) {
    expect(afterSign(once, { number, sign: 'timed_out', max })).toBe(once)
  }
})

test('the limit of a flow does not grow while it is not nearly reached', () => {
  let state = newFlowLimit(max)
  for (let count = 0; count < 100; count++) {
    state = afterAnswer(afterBegin(state), { number: state.begun, latencyMs: 10, counted: 1, max, isBusy: false })
  }
  expect(state.limit).toBe(4)
})

test('the limit of a flow goes down when answers take more than twice as long as at their best, and comes back when that stays', () => {
  const quick = recover(newFlowLimit(max), 8, 100)
  const slower = recover(quick, 3, 400)
  expect(slower.limit).toBeLessThan(quick.limit)
  expect(slower.limit).toBeGreaterThanOrEqual(4)
  expect(Math.floor(recover(slower, 100, 400).limit)).toBe(max)
})

test('the limit of a flow goes down with less while the process is busy, since what waits in flight waits for the process', () => {
  const quick = recover(newFlowLimit(max), 8, 10)
  expect(recover(quick, 3, 60).limit).toBe(quick.limit)
  expect(recover(quick, 3, 60, true).limit).toBeLessThan(quick.limit)
  expect(recover(quick, 30, 24, true).limit).toBe(max)
})

test('the limit of a flow is one when nobody answers, and doubles again from the first answer on', () => {
  const busy = recover(newFlowLimit(max), 4, 10)
  const number = busy.begun
  const stalled = afterSign({ ...busy, begun: number + 30 }, { number, sign: 'silent', max })
  expect(stalled).toMatchObject({ phase: 'stalled', limit: 1 })
  const heard = afterAnswer(stalled, { number: number + 30, latencyMs: 10, counted: 1, max, isBusy: false })
  expect(heard).toMatchObject({ phase: 'slow_start', limit: 2 })
  expect(Math.floor(recover(heard, 5, 10).limit)).toBe(max)
})

test('the limit of a flow is only a little smaller when one of many is not answered', () => {
  const busy = recover(newFlowLimit(max), 4, 10)
  const number = busy.begun
  const later = afterAnswer(
    { ...busy, begun: number + 30 },
    { number: number + 20, latencyMs: 10, counted: 20, max, isBusy: false },
  )
  expect(afterSign(later, { number, sign: 'silent', max })).toMatchObject({ phase: 'additive', limit: 64 * 0.7 })
})
