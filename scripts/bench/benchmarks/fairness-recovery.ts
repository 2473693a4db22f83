import { setTimeout as delay } from 'node:timers/promises'
import { arrivalsOf, caughtUpAfter, recoveredAfter } from '../arrivals.ts'
import { appendEvents, type Tenant, wake } from '../seed.ts'
import { calmRate, hostileRates, type Lab, type Stage } from './fairness-lab.ts'

/* Measures how soon an endpoint is served again after it failed or hung, and how soon it catches up after a burst. */

/** Most milliseconds from commit to arrival of a normal delivery. */
export const normalMs = 250
const inARow = 10
const badMs = 3_000
const leadSeconds = 6
const watchingMs = 500
/** Milliseconds to watch each case, longer than it may take. A case that has not ended then counts as this long. */
export const limitsMs = { failing: 15_000, hanging: 40_000, catchingUp: 30_000 } as const

/** Most requests in flight to one endpoint: see docs/architecture/delivery-engine.md. */
export const maxInFlight = 64
/** Events of a burst. */
export const burst = 150

export type FromBad = { seconds: number }

/** Measures how soon a calm tenant gets new deliveries again after a failure of its endpoint. */
export function measureRecovery(
  lab: Lab,
  { was, isBeside }: { was: 'failing' | 'hanging'; isBeside: boolean },
): Promise<FromBad> {
  const { receiver, recovering, tenants } = lab
  return lab.onStage(async (stage) => {
    if (isBeside) stage.begin(lab.hostileLoad, { tenants: [tenants.hanging], perSecond: hostileRates.hanging })
    await receiver.reset('arrivals')
    const since = Date.now()
    stage.begin(lab.calmLoad, { tenants: [recovering.tenant], perSecond: calmRate })
    await lead(lab)
    await behaveFor(lab, recovering.path, { as: was === 'failing' ? 'status-500' : 'hang', ms: badMs })
    const from = Date.now()
    const timeline = timelineOf(lab, stage, { tenant: recovering.tenant, since })
    return watch(limitsMs[was], async () => recoveredAfter(await timeline(), { from, normalMs, inARow }))
  })
}

/** An endpoint that catches up. */
export type CatchingUp = {
  about: string
  /** The first part of its path. */
  kind: string
  of: (lab: Lab) => { tenant: Tenant; path: string }
  latencyMs: number
  perSecond: number
  /** Milliseconds that it was down before the burst. */
  downMs: number
}

export const slow: CatchingUp = {
  about: '1.1 s',
  kind: 'after-1100',
  of: (lab) => lab.slow,
  latencyMs: 1_100,
  perSecond: 10,
  downMs: 0,
}

export const refusing: CatchingUp = {
  about: '1 in 8 fails, after an outage',
  kind: 'after-500-failing-8',
  of: (lab) => lab.refusing,
  latencyMs: 500,
  perSecond: 20,
  downMs: 1_500,
}

/** Returns the seconds in which an endpoint that can take its load must catch up with the burst. */
export function catchUpBoundSeconds({ latencyMs, perSecond }: CatchingUp): number {
  return (1.5 * burst) / (maxInFlight / (latencyMs / 1_000) - perSecond)
}

/** Measures how soon all deliveries are on time again after a burst. */
export function measureCatchingUp(lab: Lab, endpoint: CatchingUp): Promise<FromBad> {
  const { receiver } = lab
  const { tenant, path } = endpoint.of(lab)
  return lab.onStage(async (stage) => {
    await receiver.reset('arrivals')
    const since = Date.now()
    stage.begin(lab.calmLoad, { tenants: [tenant], perSecond: endpoint.perSecond })
    await lead(lab)
    if (endpoint.downMs > 0) {
      await behaveFor(lab, path, { as: 'down', ms: endpoint.downMs })
      await lead(lab)
    }
    const commit = await appendEvents(stage.world, [tenant], burst)
    await commit()
    const from = Date.now()
    await wake(stage.world)
    const timeline = timelineOf(lab, stage, { tenant, since })
    return watch(limitsMs.catchingUp, async () => caughtUpAfter(await timeline(), { from, normalMs }))
  })
}

function lead({ seconds }: Lab): Promise<void> {
  return delay(Math.min(leadSeconds, seconds) * 1_000)
}

/** Makes an endpoint respond as another kind for `ms` milliseconds. */
async function behaveFor({ receiver }: Lab, path: string, { as, ms }: { as: string; ms: number }): Promise<void> {
  await receiver.behave(path, as)
  await delay(ms)
  await receiver.behave(path, null)
}

function timelineOf({ receiver }: Lab, { world }: Stage, { tenant, since }: { tenant: Tenant; since: number }) {
  return () => arrivalsOf(world, receiver, { accountIds: [tenant.accountId], since })
}

/** Polls `look` until it returns a finite number or the limit has passed. */
async function watch(limitMs: number, look: () => Promise<number>): Promise<FromBad> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const ms = await look()
    if (Number.isFinite(ms) || performance.now() > deadline) return { seconds: Math.min(ms, limitMs) / 1_000 }
    await delay(watchingMs)
  }
}
