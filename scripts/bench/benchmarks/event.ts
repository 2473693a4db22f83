import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { Benchmark, BenchmarkContext, Measurement, Outcome, Target } from '../benchmark.ts'
import { startCluster, startLoad, startReceiver, startService } from '../lab.ts'
import { profiling } from '../profile.ts'
import { costsOf, inTurn, type Round, valuesOf } from '../rounds.ts'
import { addTenants, vacuum } from '../seed.ts'
import { median } from '../statistics.ts'
import { type LoadSize, type Measured, measureEvents, measureIdle, publish, type Way } from './event-measure.ts'
import { countingSettings, countWork, type Work } from './event-work.ts'
import { addSubscriber } from './latency.ts'

/** Events of the full load, and requests in flight while publishing them. */
const fullCount = 20_000
const fullConnections = 64
const warmUpCount = 2_000
const rateConnections = 256
/** Time limit of loads with a given number of events, never reached. */
const longSeconds = 3_600
/** Size of the part in which statements are counted. */
const countedSeconds = 10
const countedCount = 5_000
const path = '/ok/0'
/** Events before each measurement, their rate per second, and the idle time after them. */
const freshCount = 200
const freshRate = 200
const restMs = 1_000

const loads = ['10/s', '100/s', '1,000/s', 'full load'] as const
type LoadName = (typeof loads)[number]
const rates: Readonly<Record<LoadName, number | null>> = {
  '10/s': 10,
  '100/s': 100,
  '1,000/s': 1_000,
  'full load': null,
}

const cpu = { figure: 'CPU of an event', unit: 'ms' }
const megabyte = 1e6

export const event: Benchmark = {
  name: 'event',
  measures: 'POST /v1/subscribers: what one event with one delivery costs and takes, by the rate at which they come',
  baseline: 'Express, one transaction with the two inserts, one undici POST and one UPDATE',
  rounds: 3,
  // PostgreSQL starts autovacuum every 15 s with the settings of the service.
  seconds: 15,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const profile = profiling(context, 'event')
  const cluster = await startCluster(processes, {
    ...profile.cluster,
    // With `--profile`, its settings are used instead: statements are then counted all the time.
    settings: { ...(profile.cluster.settings ?? countingSettings), track_commit_timestamp: 'on' },
  })
  await using world = await cluster.create('event')
  const receiver = await startReceiver(processes)
  const load = await startLoad(processes)
  const lab = { processes, world, receiver, load }
  const [tenant, bareTenant] = await addTenants(world, [{ urls: [receiver.url + path] }, { urls: [] }])
  if (tenant === undefined || bareTenant === undefined) throw new Error('there is no tenant')
  const requests = [addSubscriber(tenant)]
  const service = await startService(processes, world, { nodeArgs: profile.nodeArgs })
  const ours: Way = { name: 'service', url: service.url, memory: service.memory, requests, table: 'events' }
  const program = await processes.start({
    name: 'bare path',
    file: import.meta.resolve('../programs/bare-event.ts'),
    args: [world.connectionString, bareTenant.accountId, receiver.url + path],
    // As for the service, and as Express recommends.
    env: { NODE_ENV: 'production' },
  })
  const bare: Way = {
    name: 'bare path',
    url: await program.ask('url', null, z.string()),
    memory: program.memory,
    requests: [addSubscriber(bareTenant)],
    table: 'subscribers',
  }

  progress('warming up')
  const warmUp = fullLoad(warmUpCount)
  await measureEvents(lab, ours, warmUp)
  await measureEvents(lab, bare, warmUp)
  await profile.begin(world)
  /** Vacuums and publishes some events, so that effects of the vacuum, such as new plans, are not measured. */
  async function prepare(way: Way): Promise<void> {
    await vacuum(world)
    await receiver.reset('nothing')
    await publish(lab, way, { count: freshCount, seconds: longSeconds, rate: freshRate, connections: rateConnections })
    await delay(restMs)
  }
  const sideOf = (way: Way, name: LoadName) => ({
    prepare: () => prepare(way),
    measure: () => measureEvents(lab, way, sizeOf(name, { seconds, count: Math.ceil(fullCount * size) })),
  })
  const sides = await inTurn<string, Measured>(
    context,
    {
      idle: { prepare: () => prepare(ours), measure: () => measureIdle(lab, ours, seconds) },
      ...Object.fromEntries(
        [ours, bare].flatMap((way) => loads.map((name) => [sideName(way, name), sideOf(way, name)])),
      ),
    },
    ({ count, rate, p50, p99, nodeSeconds, postgresSeconds }) =>
      `${count} events, ${rate.toFixed(1)}/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, CPU of Node ${nodeSeconds.toFixed(2)} s, of PostgreSQL ${postgresSeconds.toFixed(2)} s`,
  )
  const { idle = [] } = sides
  const ownIdle = idleOf(idle)
  // The idle service runs during measurements of the bare path, which itself needs no CPU time when idle.
  const bareIdle = { ...ownIdle, nodeSeconds: 0 }
  const roundsOf = (way: Way, name: LoadName) => sides[sideName(way, name)] ?? []
  const peakBytes = (await processes.usage()).get(ours.name)?.peakBytes ?? Number.NaN
  const events = loads.flatMap((name) => valuesOf(roundsOf(ours, name), ({ count }) => count))
  const count = events.reduce((sum, one) => sum + one, 0)
  const profiled = await profile.end(world, service, { what: 'event', count })
  await service.stop()

  progress('counting statements and round trips')
  const counted = {
    seconds: Math.min(seconds, countedSeconds),
    count: Math.ceil(countedCount * size),
  }
  const work = await countWork(lab, {
    requests,
    warmUp,
    loads: loads.map((name) => sizeOf(name, counted)),
    progress,
  })

  return {
    measurements: [
      ...idleMeasurements(idle),
      ...workMeasurements('idle', '/s', work.idle),
      ...loads.flatMap((name, index) => {
        const each = work.loads[index]
        return [
          ...measurementsOf(sideName(ours, name), roundsOf(ours, name), ownIdle),
          ...(each === undefined ? [] : workMeasurements(sideName(ours, name), '', each)),
          ...measurementsOf(sideName(bare, name), roundsOf(bare, name), bareIdle),
        ]
      }),
    ],
    targets: [
      ...targetsOf((name) => roundsOf(ours, name), ownIdle),
      { figure: 'greatest resident memory of Node', unit: 'MB', value: peakBytes / megabyte, goal: { atMost: 300 } },
    ],
    costs: costsOf(sides),
    notes: [
      `The service is warmed with ${warmUpCount.toLocaleString('en')} events. Full load: ${Math.ceil(fullCount * size).toLocaleString('en')} events over ${fullConnections} connections.`,
      'CPU is that of the service, or of the bare path, and of PostgreSQL. What they use while nothing happens (side "idle") is subtracted, and so are the bytes of the write-ahead log; from the bare path only what is PostgreSQL\'s, which still serves the idle service meanwhile.',
      'A rate is of events that were both published and delivered, from the first request to the last arrival. Latency is from commit to arrival.',
      'Statements, commits and round trips are counted apart, once, by pg_stat_statements, pg_stat_database and a proxy in front of PostgreSQL, without those of an idle service. Those of the bare path are 5, 2 and 5.',
      'Before each measurement the tables are vacuumed, without a checkpoint: the whole pages that the log holds after one are hardly in its bytes.',
      ...profiled,
    ],
  }
}

function sideName({ name }: Way, load: LoadName): string {
  return `${name}, ${load}`
}

function sizeOf(name: LoadName, { seconds, count }: { seconds: number; count: number }): LoadSize {
  const rate = rates[name]
  return rate === null ? fullLoad(count) : { seconds, rate, connections: rateConnections }
}

function fullLoad(count: number): LoadSize {
  return { count, seconds: longSeconds, connections: fullConnections }
}

type Rounds = readonly Round<Measured>[]
type SpentFigure = 'nodeSeconds' | 'postgresSeconds' | 'walBytes'

/** The cost of an idle second. */
type Idle = Readonly<Record<SpentFigure, number>>

/** Returns the median cost of an idle second. */
function idleOf(idle: Rounds): Idle {
  const perSecond = (figure: SpentFigure) => median(valuesOf(idle, (value) => value[figure] / value.seconds))
  return {
    nodeSeconds: perSecond('nodeSeconds'),
    postgresSeconds: perSecond('postgresSeconds'),
    walBytes: perSecond('walBytes'),
  }
}

/** Returns the cost of an event in each round, without the cost of being idle. */
function eachEvent(rounds: Rounds, idle: Idle, figure: SpentFigure): number[] {
  return valuesOf(rounds, (value) => (value[figure] - idle[figure] * value.seconds) / value.count)
}

function cpuOfEvent(rounds: Rounds, idle: Idle): { node: number[]; postgres: number[]; both: number[] } {
  const milliseconds = (figure: SpentFigure) => eachEvent(rounds, idle, figure).map((seconds) => seconds * 1_000)
  const node = milliseconds('nodeSeconds')
  const postgres = milliseconds('postgresSeconds')
  return { node, postgres, both: node.map((ms, index) => ms + (postgres[index] ?? Number.NaN)) }
}

function measurementsOf(side: string, rounds: Rounds, idle: Idle): Measurement[] {
  const { node, postgres, both } = cpuOfEvent(rounds, idle)
  return [
    { side, ...cpu, values: both },
    { side, figure: 'of it Node', unit: 'ms', values: node },
    { side, figure: 'of it PostgreSQL', unit: 'ms', values: postgres },
    { side, figure: 'published and delivered', unit: '/s', values: valuesOf(rounds, ({ rate }) => rate) },
    { side, figure: 'p50', unit: 'ms', values: valuesOf(rounds, ({ p50 }) => p50) },
    { side, figure: 'p99', unit: 'ms', values: valuesOf(rounds, ({ p99 }) => p99) },
    { side, figure: 'write-ahead log of an event', unit: 'bytes', values: eachEvent(rounds, idle, 'walBytes') },
    { side, figure: 'memory of Node', unit: 'MB', values: valuesOf(rounds, (value) => value.memoryBytes / megabyte) },
  ]
}

function idleMeasurements(idle: Rounds): Measurement[] {
  const side = 'idle'
  const perSecond = (figure: SpentFigure) => valuesOf(idle, (value) => value[figure] / value.seconds)
  const milliseconds = (figure: SpentFigure) => perSecond(figure).map((seconds) => seconds * 1_000)
  return [
    { side, figure: 'CPU of Node', unit: 'ms/s', values: milliseconds('nodeSeconds') },
    { side, figure: 'CPU of PostgreSQL', unit: 'ms/s', values: milliseconds('postgresSeconds') },
    { side, figure: 'write-ahead log', unit: 'bytes/s', values: perSecond('walBytes') },
    { side, figure: 'memory of Node', unit: 'MB', values: valuesOf(idle, (value) => value.memoryBytes / megabyte) },
  ]
}

function workMeasurements(side: string, unit: string, { statements, commits, roundTrips }: Work): Measurement[] {
  return [
    { side, figure: 'statements', unit, values: [statements] },
    { side, figure: 'commits', unit, values: [commits] },
    { side, figure: 'round trips', unit, values: [roundTrips] },
  ]
}

function targetsOf(roundsAt: (name: LoadName) => Rounds, idle: Idle): Target[] {
  const medianAt = (name: LoadName, figure: 'p50' | 'p99' | 'rate') =>
    median(valuesOf(roundsAt(name), (value) => value[figure]))
  const cpuAt = (name: LoadName) => median(cpuOfEvent(roundsAt(name), idle).both)
  return [
    { figure: `${cpu.figure}, 100/s`, unit: cpu.unit, value: cpuAt('100/s'), goal: { atMost: 3 } },
    { figure: `${cpu.figure}, full load`, unit: cpu.unit, value: cpuAt('full load'), goal: { atMost: 0.8 } },
    {
      figure: 'published and delivered, full load',
      unit: '/s',
      value: medianAt('full load', 'rate'),
      goal: { atLeast: 1_600 },
    },
    { figure: 'p50, 100/s', unit: 'ms', value: medianAt('100/s', 'p50'), goal: { atMost: 3 } },
    { figure: 'p99, 1,000/s', unit: 'ms', value: medianAt('1,000/s', 'p99'), goal: { atMost: 25 } },
  ]
}
