import { describe, expect, it } from 'vitest'
import {
  createLane,
  createPlaces,
  type Held,
  type InFlight,
  type Lane,
  type Places,
} from '../../server/delivery/lane.ts'

/** A lane whose attempts end when the test says so. */
function laneWith(options: { budget: number; webhookCap: number } | { places: Places; webhookCap: number }) {
  const places = 'places' in options ? options.places : createPlaces(options.budget)
  const inFlight: InFlight = new Map()
  const started: Held[] = []
  const ends = new Map<Held, () => void>()
  const lane: Lane = createLane({
    places,
    webhookCap: options.webhookCap,
    inFlight,
    onEnd: () => lane.pump(),
    attempt(one) {
      started.push(one)
      return new Promise((resolve) => ends.set(one, resolve))
    },
  })
  async function end(one: Held): Promise<void> {
    ends.get(one)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { lane, started, end, inFlight }
}

function held(lane: Lane, webhookId: string, since = performance.now(), accountId = 'account'): Held {
  return { lane, since, delivery: { accountId, webhookId }, claimed: {} } as unknown as Held
}

describe('a lane', () => {
  it('starts no more than its budget, and the next when one ends', async () => {
    const { lane, started, end } = laneWith({ budget: 2, webhookCap: 10 })
    lane.add([held(lane, 'a'), held(lane, 'b'), held(lane, 'c')])
    expect(started).toHaveLength(2)
    await end(started[0] as Held)
    expect(started).toHaveLength(3)
  })

  it('starts no more for one webhook than its cap, while others go on', () => {
    const { lane, started } = laneWith({ budget: 10, webhookCap: 2 })
    lane.add([...Array(5)].map(() => held(lane, 'busy')))
    lane.add([held(lane, 'other')])
    expect(started.map((one) => one.delivery.webhookId)).toEqual(['busy', 'busy', 'other'])
  })

  it('lets webhooks take turns', () => {
    const { lane, started } = laneWith({ budget: 4, webhookCap: 4 })
    const deliveries = ['a', 'a', 'a', 'a', 'b', 'b'].map((id) => held(lane, id))
    lane.add(deliveries)
    expect(started.map((one) => one.delivery.webhookId)).toEqual(['a', 'b', 'a', 'b'])
  })

  it('lets accounts take turns, and the webhooks of each', async () => {
    const { lane, started, end } = laneWith({ budget: 1, webhookCap: 4 })
    const ofAccount = (accountId: string, ids: string[]) =>
      ids.map((id) => held(lane, id, performance.now(), accountId))
    lane.add([...ofAccount('large', ['a', 'a', 'b', 'c']), ...ofAccount('small', ['x', 'x', 'x'])])
    for (let ended = 0; ended < 6; ended++) await end(started[ended] as Held)
    expect(started.map((one) => one.delivery.webhookId)).toEqual(['a', 'x', 'b', 'x', 'c', 'x', 'a'])
  })

  it('gives a place to the account that has the fewest, however long the others keep theirs', async () => {
    const { lane, started, end } = laneWith({ budget: 3, webhookCap: 4 })
    const ofAccount = (accountId: string, ids: string[]) =>
      ids.map((id) => held(lane, id, performance.now(), accountId))
    lane.add(ofAccount('large', ['a', 'b', 'c', 'a', 'b', 'c']))
    lane.add(ofAccount('small', ['x', 'x', 'x']))
    await end(started[0] as Held)
    for (let ended = 3; ended < 6; ended++) await end(started[ended] as Held)
    expect(started.map((one) => one.delivery.webhookId)).toEqual(['a', 'b', 'c', 'x', 'x', 'x', 'a'])
  })

  it('has the webhooks of an account wait neither for one of them that is capped nor for other accounts', () => {
    const { lane, started } = laneWith({ budget: 10, webhookCap: 1 })
    const ofAccount = (accountId: string, ids: string[]) =>
      ids.map((id) => held(lane, id, performance.now(), accountId))
    lane.add([...ofAccount('one', ['a', 'a', 'a', 'b']), ...ofAccount('two', ['x', 'x'])])
    expect(started.map((one) => one.delivery.webhookId)).toEqual(['a', 'x', 'b'])
    expect(lane.takeWaiting('a')).toHaveLength(2)
    expect(lane.takeWaiting()).toHaveLength(1)
    expect(lane.takeWaiting()).toEqual([])
  })

  it('counts what is held, not what runs, against what may be claimed', async () => {
    const { lane, started, end } = laneWith({ budget: 2, webhookCap: 2 })
    lane.add([held(lane, 'a'), held(lane, 'a'), held(lane, 'a')])
    expect(lane.free()).toBe(3)
    await end(started[0] as Held)
    expect(lane.free()).toBe(3)
    lane.release()
    expect(lane.free()).toBe(4)
  })

  it('shares its places with another, but not what it may claim', async () => {
    const places = createPlaces(2)
    const one = laneWith({ places, webhookCap: 10 })
    const other = laneWith({ places, webhookCap: 10 })
    one.lane.add([held(one.lane, 'a'), held(one.lane, 'a'), held(one.lane, 'a')])
    other.lane.add([held(other.lane, 'b')])
    expect([one.started.length, other.started.length]).toEqual([2, 0])
    expect([one.lane.free(), other.lane.free()]).toEqual([3, 5])
    other.lane.pump()
    expect(other.started).toHaveLength(0)
    one.lane.halt()
    await one.end(one.started[0] as Held)
    other.lane.pump()
    expect(other.started).toHaveLength(1)
    expect(places.taken).toBe(2)
  })

  it('starts nothing any more when it is halted, and gives out what waits', async () => {
    const { lane, started, end } = laneWith({ budget: 1, webhookCap: 1 })
    const [first, second, third] = ['a', 'a', 'b'].map((id) => held(lane, id)) as [Held, Held, Held]
    lane.add([first, second])
    lane.halt()
    await end(first)
    lane.add([third])
    expect(started).toEqual([first])
    expect(lane.takeWaiting()).toEqual([second, third])
  })

  it('gives the place of what hangs to others when another lane takes it over', async () => {
    const { lane, started, end } = laneWith({ budget: 1, webhookCap: 5 })
    const { lane: other } = laneWith({ budget: 1, webhookCap: 5 })
    const [hanging, next, last] = ['a', 'b', 'c'].map((id) => held(lane, id)) as [Held, Held, Held]
    lane.add([hanging, next, last])
    expect(lane.hanging(60_000)).toEqual([])
    expect(lane.hanging(-1)).toEqual([hanging])
    other.takeOver(hanging)
    expect([lane.free(), other.free()]).toEqual([1, 2])
    lane.pump()
    expect(started).toEqual([hanging, next])
    // Its end is the other lane's: this one stays full.
    await end(hanging)
    expect(started).toEqual([hanging, next])
    await end(next)
    expect(started).toEqual([hanging, next, last])
  })

  it('names a webhook as stuck whose own cap lets none of its line go on', async () => {
    const { lane, started, end } = laneWith({ budget: 3, webhookCap: 2 })
    const since = performance.now() - 1_000
    lane.add([...Array(4)].map(() => held(lane, 'busy', since)))
    lane.add([held(lane, 'other', since), held(lane, 'other', since)])
    // `busy` began a moment ago. `other` waits for a place: the lane is full.
    expect(lane.stuck(500)).toEqual([])
    expect(lane.stuck(0)).toEqual(['busy'])
    await end(started[0] as Held)
    expect(lane.stuck(500)).toEqual([])
  })

  it('names a webhook as saturated only when its own cap has held it up', () => {
    const { lane } = laneWith({ budget: 3, webhookCap: 2 })
    const longAgo = performance.now() - 5_000
    lane.add(['hung', 'hung', 'hung'].map((id) => held(lane, id, longAgo)))
    lane.add(['fine', 'fine'].map((id) => held(lane, id, longAgo)))
    expect(lane.saturated(-1)).toEqual(['hung'])
    // It has waited for long, but only now for its cap: before, for a place.
    expect(lane.saturated(1_000)).toEqual([])
  })
})
