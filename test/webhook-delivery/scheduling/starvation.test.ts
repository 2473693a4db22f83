import { describe, expect, test } from 'vitest'
import type { Webhook } from './simulated/backlog.ts'
import {
  answersIn,
  type Behaviour,
  during,
  fails,
  hangs,
  isDown,
  oneIn,
  refusesBeyond,
  works,
} from './simulated/endpoints.ts'
import { createWorld, quantile, type World, waitsOf } from './simulated/simulation.ts'

/*
 * The cases in which one account, or a bad moment of an endpoint, kept deliveries from being made: see
 * docs/architecture/delivery-engine.md. All in moved time.
 */

const endMs = 60_000

/** Two settlements and a claim: what a delivery waits for that nobody is before. Milliseconds. */
const atOnceMs = 30

function addCalm(world: World, behaviour: Behaviour = answersIn(5)): Webhook {
  world.endpoint('calm.example/hook', behaviour)
  const calm = world.addWebhook('calm', 'calm.example/hook')
  world.load([calm], { perSecond: 5, to: endMs })
  return calm
}

function addHostile(
  world: World,
  count: number,
  { url, perSecond }: { url: (n: number) => string; perSecond: number },
) {
  const webhooks = Array.from({ length: count }, (_, n) => world.addWebhook('hostile', url(n)))
  for (const webhook of webhooks) world.endpoint(webhook.url, hangs)
  world.load(webhooks, { perSecond, to: endMs })
  return webhooks
}

/** Milliseconds from a time until everything that waited then, or came since, has been begun. */
function caughtUpAfter(world: World, from: number): number {
  for (let at = from + 50; at < from + 120_000; at += 100) {
    world.time.runUntil(at)
    const isBehind = world.deliveries.some(({ begunAt, queuedAt }) => begunAt.length === 0 && queuedAt < at - 40)
    if (!isBehind) return at - from
  }
  return Number.POSITIVE_INFINITY
}

/** The first attempt begun after a time. */
function firstAfter(world: World, from: number): number {
  const times = world.deliveries.flatMap(({ webhook, begunAt }) => (webhook.account === 'calm' ? begunAt : []))
  return Math.min(...times.filter((at) => at >= from)) - from
}

describe.each([1, 3])('a tenant whose endpoints never answer, with %i processes', (processes) => {
  test('a tenant whose endpoints never answer delays nobody by changing the URLs of 30 webhooks 20 times a second each', () => {
    const world = createWorld({ processes })
    addCalm(world)
    const webhooks = addHostile(world, 30, { url: (n) => `hostile.example/${n}`, perSecond: 150 })
    let changes = 0
    const change = () => {
      for (const webhook of webhooks) {
        const url = `hostile.example/changed/${changes++}`
        world.endpoint(url, hangs)
        world.change(webhook, url)
      }
      if (world.time.now() < endMs) world.time.after(50, change)
    }
    world.time.after(0, change)
    world.time.runUntil(endMs + 5_000)
    expect(world.broken).toEqual([])
    expect(quantile(waitsOf(world, 'calm'), 1)).toBeLessThanOrEqual(atOnceMs)
  })

  test('a tenant whose endpoints never answer delays nobody with 24 webhooks, and not one whose endpoint failed for 3 s', () => {
    const world = createWorld({ processes })
    addCalm(world, during(10_000, 13_000, fails, answersIn(5)))
    addHostile(world, 24, { url: (n) => `${n}.hostile.example/hook`, perSecond: 96 })
    world.time.runUntil(endMs + 20_000)
    expect(world.broken).toEqual([])
    expect(quantile(waitsOf(world, 'calm'), 1)).toBeLessThanOrEqual(atOnceMs)
    expect(
      world.deliveries.filter(({ webhook, state }) => webhook.account === 'calm' && state !== 'succeeded'),
    ).toEqual([])
  })

  test('a tenant whose endpoints never answer delays nobody with 200 webhooks of one URL, which is asked no more than its flow may', () => {
    const world = createWorld({ processes })
    addCalm(world)
    addHostile(world, 200, { url: () => 'hostile.example/hook', perSecond: 400 })
    world.time.runUntil(endMs)
    expect(world.broken).toEqual([])
    expect(quantile(waitsOf(world, 'calm'), 1)).toBeLessThanOrEqual(atOnceMs)
    // Four at first, and a probe every five seconds until the first are given up.
    expect(world.mostInFlight.get('hostile.example/hook')).toBeLessThanOrEqual(11 * processes)
  })

  test('a tenant whose endpoints never answer delays nobody with 2,000 webhooks of as many hosts', () => {
    const world = createWorld({ processes })
    addCalm(world)
    addHostile(world, 2_000, { url: (n) => `${n}.hostile.example/hook`, perSecond: 1_000 })
    world.time.runUntil(20_000)
    expect(world.broken).toEqual([])
    expect(
      quantile(
        waitsOf(world, 'calm').filter((wait) => wait < Number.POSITIVE_INFINITY),
        1,
      ),
    ).toBeLessThanOrEqual(atOnceMs)
    for (const { scheduler } of world.processes) expect(scheduler.held('hostile')).toBeLessThanOrEqual(615)
  })
})

function hangAtOneHost(world: World): void {
  const webhooks = Array.from({ length: 60 }, (_, n) => world.addWebhook('calm', `calm.example/hanging/${n}`))
  for (const webhook of webhooks) world.endpoint(webhook.url, hangs)
  world.load(webhooks, { perSecond: 120, to: endMs })
  let changes = 0
  const change = () => {
    const webhook = webhooks[changes % 20] as Webhook
    changes += 1
    const url = `calm.example/changed/${changes}`
    world.endpoint(url, hangs)
    world.change(webhook, url)
    if (world.time.now() < endMs) world.time.after(50, change)
  }
  world.time.after(1_000, change)
}

/** In the order in which they came. */
function waitsOfHealthy(world: World): number[] {
  return world.deliveries
    .filter(({ webhook }) => webhook.url === 'calm.example/hook')
    .map(({ queuedAt, begunAt }) => (begunAt[0] ?? Number.POSITIVE_INFINITY) - queuedAt)
}

test('2,000 accounts with an endpoint each that hangs delay nobody whose endpoint answers', () => {
  const world = createWorld()
  addCalm(world)
  const hanging = Array.from({ length: 2_000 }, (_, n) => world.addWebhook(`hanging ${n}`, `${n}.example/hook`))
  for (const webhook of hanging) world.endpoint(webhook.url, hangs)
  world.load(hanging, { perSecond: 500, to: endMs })
  world.time.runUntil(endMs)
  expect(world.broken).toEqual([])
  expect(quantile(waitsOf(world, 'calm'), 1)).toBeLessThanOrEqual(2 * atOnceMs)
})

test('an account with 500 endpoints that hang, each on a host of its own, has them delay none of its own that answers', () => {
  const world = createWorld()
  world.endpoint('calm.example/hook', answersIn(5))
  const own = world.addWebhook('hostile', 'calm.example/hook')
  world.load([own], { perSecond: 5, to: endMs })
  addHostile(world, 500, { url: (n) => `${n}.example/hook`, perSecond: 250 })
  world.time.runUntil(endMs)
  expect(world.broken).toEqual([])
  const waits = world.deliveries
    .filter(({ webhook }) => webhook === own)
    .map(({ queuedAt, begunAt }) => (begunAt[0] ?? Number.POSITIVE_INFINITY) - queuedAt)
  expect(Math.max(...waits)).toBeLessThanOrEqual(2 * atOnceMs)
})

test('an account with 60 URLs of one host that hang and change has them delay none that answers there', () => {
  const world = createWorld()
  addCalm(world)
  world.time.after(1_000, () => hangAtOneHost(world))
  world.time.runUntil(endMs + 5_000)
  expect(world.broken).toEqual([])
  const waits = waitsOfHealthy(world)
  expect(Math.max(...waits)).toBeLessThanOrEqual(atOnceMs)
})

test('a new URL waits one time-out at most behind 60 URLs of its host that hang and change', () => {
  const world = createWorld()
  hangAtOneHost(world)
  world.time.after(20_000, () => addCalm(world))
  world.time.runUntil(endMs + 5_000)
  expect(world.broken).toEqual([])
  const waits = waitsOfHealthy(world)
  expect(Math.max(...waits)).toBeLessThanOrEqual(35_000)
  expect(waits.at(-1)).toBeLessThanOrEqual(atOnceMs)
})

describe('an endpoint', () => {
  test('an endpoint that hung for 3 s gets new deliveries within one probe of its recovery', () => {
    const world = createWorld()
    addCalm(world, during(10_000, 13_000, hangs, answersIn(5)))
    world.time.runUntil(endMs)
    expect(firstAfter(world, 13_000)).toBeLessThanOrEqual(5_000 + atOnceMs)
  })

  test.each([
    ['that answered 500 for 3 s', fails],
    ['that refused connections for 3 s', isDown],
  ])('%s gets new deliveries at once when it has recovered', (_, behaviour) => {
    const world = createWorld()
    addCalm(world, during(10_000, 13_000, behaviour, answersIn(5)))
    world.time.runUntil(endMs)
    expect(firstAfter(world, 13_000)).toBeLessThanOrEqual(200 + atOnceMs)
  })

  test.each([
    { about: 'takes 1.1 s, at 10 events/s', behaviour: answersIn(1_100), perSecond: 10, latencyMs: 1_100 },
    { about: 'takes 1.1 s and works on 64 at once', behaviour: works(64, 1_100), perSecond: 10, latencyMs: 1_100 },
    { about: 'takes 200 ms, at 50 events/s', behaviour: answersIn(200), perSecond: 50, latencyMs: 200 },
    {
      about: 'fails 1 in 8, after an outage of 1.5 s',
      behaviour: during(10_000, 11_500, isDown, oneIn(8, fails, answersIn(100))),
      perSecond: 20,
      latencyMs: 100,
    },
  ])('an endpoint that $about has caught up with a burst of 150 in time', ({ behaviour, perSecond, latencyMs }) => {
    const world = createWorld()
    world.endpoint('slow.example/hook', behaviour)
    const webhook = world.addWebhook('slow', 'slow.example/hook')
    world.load([webhook], { perSecond, to: endMs })
    world.time.runUntil(20_000)
    for (let count = 0; count < 150; count++) world.emit(webhook)
    const boundMs = (1_000 * 1.5 * 150) / (64 / (latencyMs / 1_000) - perSecond)
    // It doubles before it has the most in flight.
    expect(caughtUpAfter(world, 20_000)).toBeLessThanOrEqual(boundMs + 2 * latencyMs)
  })

  test('an endpoint that has what is beyond its power wait is found out by its latency', () => {
    const world = createWorld()
    world.endpoint('queue.example/hook', works(4, 30))
    const webhook = world.addWebhook('queue', 'queue.example/hook')
    for (let count = 0; count < 20_000; count++) world.emit(webhook)
    world.time.runUntil(endMs)
    expect(world.processes[0]?.scheduler.view('queue queue.example/hook')?.limit.limit).toBeLessThanOrEqual(24)
    // Of 133 a second that it can take.
    const done = world.deliveries.filter(({ state }) => state === 'succeeded').length
    expect(done / (endMs / 1_000)).toBeGreaterThan(110)
  })

  test('an endpoint that answers 503 to what is beyond its power is found out, and refuses few', () => {
    const world = createWorld()
    world.endpoint('small.example/hook', refusesBeyond(20, 100))
    const webhook = world.addWebhook('small', 'small.example/hook')
    for (let count = 0; count < 20_000; count++) world.emit(webhook)
    world.time.runUntil(endMs)
    const attempts = world.deliveries.reduce((sum, { begunAt }) => sum + begunAt.length, 0)
    const done = world.deliveries.filter(({ state }) => state === 'succeeded').length
    expect(done / attempts).toBeGreaterThan(0.97)
    // Of 200 a second that it could take.
    expect(done / (endMs / 1_000)).toBeGreaterThan(130)
  })

  test('an endpoint that refuses 1 in 8 for no reason of load keeps being asked, about four at once', () => {
    const world = createWorld()
    world.endpoint(
      'odd.example/hook',
      oneIn(8, () => ({ kind: 'refuses', afterMs: 2 }), answersIn(100)),
    )
    const webhook = world.addWebhook('odd', 'odd.example/hook')
    for (let count = 0; count < 5_000; count++) world.emit(webhook)
    world.time.runUntil(endMs)
    const done = world.deliveries.filter(({ state }) => state === 'succeeded').length
    expect(done / (endMs / 1_000)).toBeGreaterThan(25)
  })
})
