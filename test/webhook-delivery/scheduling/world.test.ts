import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Webhook } from './simulated/backlog.ts'
import {
  answersIn,
  type Behaviour,
  fails,
  flaps,
  hangs,
  isDown,
  oneIn,
  refusesBeyond,
  works,
} from './simulated/endpoints.ts'
import { createWorld, quantile, type World, waitsOf } from './simulated/simulation.ts'

/*
 * Worlds made at random: many accounts with all kinds of endpoints, hostile ones among them, and several processes
 * that are killed, started and left without notifications. What is to hold at each moment is checked by the world.
 */

const refuses: Behaviour = () => ({ kind: 'refuses', afterMs: 3 })

const kinds = {
  fast: answersIn(5),
  slow: answersIn(1_100),
  hanging: hangs,
  down: isDown,
  failing: fails,
  flapping: flaps(3_000, hangs, answersIn(20)),
  odd: oneIn(8, refuses, answersIn(40)),
  small: refusesBeyond(5, 50),
  queueing: works(4, 30),
} satisfies Record<string, Behaviour>

/** The number of accounts whose waits are measured. Their endpoints are fast: only other accounts can delay them. */
const calmAccounts = 20
const loadMs = 20_000

const worlds = fc.record({
  processes: fc.integer({ min: 1, max: 4 }),
  tenants: fc.array(
    fc.record({
      kind: fc.constantFrom(...(Object.keys(kinds) as (keyof typeof kinds)[])),
      webhooks: fc.integer({ min: 1, max: 30 }),
      isOneHost: fc.boolean(),
      isOneUrl: fc.boolean(),
      perSecond: fc.integer({ min: 1, max: 60 }),
      burst: fc.constantFrom(0, 0, 0, 500),
      changesUrls: fc.constantFrom(false, false, true),
      deletesAt: fc.option(fc.integer({ min: 1_000, max: loadMs })),
    }),
    { minLength: 5, maxLength: 40 },
  ),
  /** Processes are killed and others started in their place. */
  restartsAt: fc.array(fc.integer({ min: 1_000, max: loadMs }), { maxLength: 2 }),
  /** The notifications of a process fail, for 3 s. */
  deafAt: fc.array(fc.integer({ min: 1_000, max: loadMs }), { maxLength: 2 }),
})
type Plan = typeof worlds extends fc.Arbitrary<infer T> ? T : never
type Tenant = Plan['tenants'][number]

function addTenant(world: World, tenant: Tenant, account: string): void {
  const { kind, isOneHost, isOneUrl, perSecond, burst } = tenant
  const urlOf = (n: number) => `${isOneHost ? account : `${account}-${n}`}/${isOneUrl ? 'hook' : n}`
  const webhooks = Array.from({ length: tenant.webhooks }, (_, n) => world.addWebhook(account, urlOf(n)))
  for (const { url } of webhooks) world.endpoint(url, kinds[kind])
  world.load(webhooks, { perSecond, to: loadMs })
  for (let count = 0; count < burst; count++) world.emit(webhooks[count % webhooks.length] as Webhook)
  if (tenant.changesUrls) changeUrls(world, webhooks, kinds[kind])
  const { deletesAt } = tenant
  if (deletesAt !== null) world.time.after(deletesAt, () => world.change(webhooks[0] as Webhook, null))
}

function changeUrls(world: World, webhooks: readonly Webhook[], behaviour: Behaviour): void {
  let changes = 0
  const change = () => {
    const webhook = webhooks[changes % webhooks.length] as Webhook
    changes += 1
    if (webhook.version < Number.POSITIVE_INFINITY) {
      const url = `${webhook.account}-changed/${changes}`
      world.endpoint(url, behaviour)
      world.change(webhook, url)
    }
    if (world.time.now() < loadMs) world.time.after(20, change)
  }
  world.time.after(20, change)
}

function build(plan: Plan): World {
  const world = createWorld({ processes: plan.processes })
  for (let calm = 0; calm < calmAccounts; calm++) {
    world.endpoint(`calm-${calm}/hook`, answersIn(5))
    world.load([world.addWebhook(`calm-${calm}`, `calm-${calm}/hook`)], { perSecond: 4, to: loadMs })
  }
  plan.tenants.forEach((tenant, index) => {
    addTenant(world, tenant, `tenant-${index}`)
  })
  for (const at of plan.restartsAt) {
    world.time.after(at, () => {
      const [oldest] = world.processes
      if (oldest === undefined) return
      world.kill(oldest)
      world.startProcess()
    })
  }
  for (const at of plan.deafAt) {
    world.time.after(at, () => {
      const deaf = world.processes.at(-1)
      deaf?.hear(false)
      world.time.after(3_000, () => deaf?.hear(true))
    })
  }
  return world
}

function calmWaits(world: World): number[] {
  return Array.from({ length: calmAccounts }, (_, calm) => waitsOf(world, `calm-${calm}`))
    .flat()
    .sort((a, b) => a - b)
}

test('a world of many accounts keeps every rule at every moment, loses nothing and starves nobody', () => {
  fc.assert(
    fc.property(worlds, (plan) => {
      const world = build(plan)
      world.time.runUntil(loadMs + 45_000)
      expect(world.broken).toEqual([])
      const waits = calmWaits(world)
      // Deliveries in the hand of a killed process begin when its claims have lapsed, or when another process polls.
      const isUndisturbed = plan.restartsAt.length === 0 && plan.deafAt.length === 0
      expect(quantile(waits, 1)).toBeLessThanOrEqual(isUndisturbed ? 60 : 25_000)
      expect(quantile(waits, 0.95)).toBeLessThanOrEqual(500)
      expect(world.longestReservation).toBeLessThanOrEqual(1_020)
      // A delivery that is neither over nor in the hand of a process is in the queue, once.
      const inQueue = world.deliveries.filter(({ state }) => state === 'queued').length
      expect(world.backlog.size()).toBe(inQueue)
      const calm = world.deliveries.filter(({ webhook }) => webhook.account.startsWith('calm-'))
      expect(calm.filter(({ state }) => state !== 'succeeded')).toEqual([])
      if (plan.restartsAt.length === 0) for (const { begunAt } of calm) expect(begunAt).toHaveLength(1)
    }),
    // A smaller world that breaks too is not worth the time it takes to find.
    { numRuns: 12, endOnFailure: true },
  )
}, 120_000)

test('a world of many accounts makes 6,000 accounts wait for nobody, a third of which hang, fail or refuse, when a process is started beside', () => {
  const world = createWorld({ processes: 2 })
  const behaviours = [kinds.fast, kinds.slow, kinds.fast, kinds.hanging, kinds.fast, kinds.odd]
  for (let account = 0; account < 6_000; account++) {
    const url = `${account}.example/hook`
    world.endpoint(url, behaviours[account % behaviours.length] as Behaviour)
    const name = `${account % behaviours.length === 0 ? 'calm' : 'other'}-${account}`
    const webhook = world.addWebhook(name, url)
    world.time.after(account, () => world.emit(webhook))
    world.time.after(6_000 + account, () => world.emit(webhook))
  }
  world.time.after(5_000, () => world.startProcess())
  world.time.runUntil(60_000)
  expect(world.broken).toEqual([])
  const waits = world.deliveries
    .filter(({ webhook }) => webhook.account.startsWith('calm'))
    .map(({ queuedAt, begunAt }) => (begunAt[0] ?? Number.POSITIVE_INFINITY) - queuedAt)
    .sort((a, b) => a - b)
  expect(waits).toHaveLength(2_000)
  expect(quantile(waits, 1)).toBeLessThanOrEqual(60)
})

test('a world of many accounts begins nothing with what was told to be old, which it does when nobody compares', () => {
  const plan: Plan = {
    processes: 3,
    tenants: Array.from({ length: 10 }, (_, index) => ({
      kind: index % 2 === 0 ? ('fast' as const) : ('slow' as const),
      webhooks: 5,
      isOneHost: true,
      isOneUrl: false,
      perSecond: 200,
      burst: 500,
      changesUrls: true,
      deletesAt: null,
    })),
    restartsAt: [],
    deafAt: [5_000],
  }
  const world = build(plan)
  world.time.runUntil(loadMs)
  expect(world.broken).toEqual([])

  const careless = build(plan)
  careless.checksVersions = false
  for (let ms = 1_000; ms <= loadMs && careless.broken.length === 0; ms += 1_000) careless.time.runUntil(ms)
  expect(careless.broken).not.toEqual([])
})
