import { setTimeout as delay } from 'node:timers/promises'
import type { Load, LoadOptions, Receiver, World } from '../lab.ts'
import type { Processes } from '../processes.ts'
import { untilSettled } from '../seed.ts'
import { median, quantile } from '../statistics.ts'
import { walPosition } from './drain.ts'
import { commitTimes } from './latency.ts'

/* Measures the cost of events at a given rate, with one delivery each. */

/** Milliseconds to wait for arrivals after the last request. */
const patienceMs = 60_000
/** Milliseconds to wait for writes after the last arrival. */
const settlingMs = 1_000

export type Lab = { processes: Processes; world: World; receiver: Receiver; load: Load }

/** A path from a request to a delivered event: the service or the baseline. */
export type Way = {
  /** Name of the process in the usage. */
  name: string
  url: string
  /** Returns the present memory of the process in bytes. */
  memory(): Promise<number>
  requests: LoadOptions['requests']
  /** The table of the rows whose ids are sent to the receiver. They do not change after their commit. */
  table: 'events' | 'subscribers'
}

export type LoadSize = Pick<LoadOptions, 'seconds' | 'connections' | 'count' | 'rate'>

/** The total cost of a period. */
export type Spent = { seconds: number; nodeSeconds: number; postgresSeconds: number; walBytes: number }

export type Measured = Spent & {
  /** Events published and delivered. */
  count: number
  /** Events per second, from the first request to the last arrival. */
  rate: number
  /** Milliseconds from commit to arrival. */
  p50: number
  p99: number
  /** Memory of the Node process at the end. */
  memoryBytes: number
}

/** Publishes events and waits until all have arrived and are settled. Throws when some do not arrive. */
export async function measureEvents(lab: Lab, way: Way, size: LoadSize): Promise<Measured> {
  const { world, receiver } = lab
  await receiver.reset('arrivals')
  const since = new Date()
  let count = 0
  let rate = 0
  const spent = await spend(lab, way, async () => {
    const began = performance.now()
    count = await publish(lab, way, size)
    rate = count / ((performance.now() - began) / 1_000)
    await delay(settlingMs)
  })
  const memoryBytes = await way.memory()
  await untilSettled(world, since)
  const arrivals = await receiver.arrivals()
  const committed = await commitTimes(world, way.table, arrivals)
  const waits = arrivals.map(([id, at]) => at - (committed.get(id) ?? Number.NaN))
  return { ...spent, count, rate, p50: median(waits), p99: quantile(waits, 0.99), memoryBytes }
}

/** Measures the cost of being idle. */
export async function measureIdle(lab: Lab, way: Way, seconds: number): Promise<Measured> {
  const spent = await spend(lab, way, () => delay(seconds * 1_000))
  const none = Number.NaN
  return { ...spent, count: 0, rate: 0, p50: none, p99: none, memoryBytes: await way.memory() }
}

/** Publishes events, waits for the last arrival and returns their number. */
export async function publish({ receiver, load }: Lab, { url, requests }: Way, size: LoadSize): Promise<number> {
  const { latencies } = await load.run({ ...size, origins: [url], requests }, 201)
  const { length: count } = latencies
  await Promise.race([receiver.until('ok', count), delay(patienceMs, undefined, { ref: false })])
  const arrived = await receiver.count('ok')
  if (arrived !== count) throw new Error(`of ${count} events, ${arrived} came in`)
  return count
}

/** Returns the usage of a path and of PostgreSQL during `work`. */
async function spend({ processes, world }: Lab, { name }: Way, work: () => Promise<void>): Promise<Spent> {
  const read = async () => {
    const [usage, walBytes] = await Promise.all([processes.usage(), walPosition(world)])
    const secondsOf = (process: string) => usage.get(process)?.cpuSeconds ?? 0
    return { at: performance.now(), node: secondsOf(name), postgres: secondsOf('postgres'), walBytes }
  }
  const before = await read()
  await work()
  const after = await read()
  return {
    seconds: (after.at - before.at) / 1_000,
    nodeSeconds: after.node - before.node,
    postgresSeconds: after.postgres - before.postgres,
    walBytes: after.walBytes - before.walBytes,
  }
}
