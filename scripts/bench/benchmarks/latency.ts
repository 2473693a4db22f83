import { sql } from 'kysely'
import { z } from 'zod'
import type { Benchmark, BenchmarkContext, Measurement, Outcome, Target } from '../benchmark.ts'
import { type Load, type Receiver, startCluster, startLoad, startReceiver, startService, type World } from '../lab.ts'
import type { Processes } from '../processes.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown, type Tenant, untilSettled } from '../seed.ts'
import { median, quantile } from '../statistics.ts'

/** Events per second. */
const rates = [50, 200, 1_000] as const
/** The rate with targets. */
const targetRate = 200
const connections = 256
const path = '/ok/0'

export const latency: Benchmark = {
  name: 'latency',
  measures: 'commit → first byte at the receiver, in one process, and with the API and the worker apart',
  baseline: 'one INSERT and one POST done directly',
  rounds: 3,
  seconds: 10,
  run,
}

type Measured = { p50: number; p99: number; rate: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  // Records the commit time of each event, taken just before the commit becomes durable.
  const cluster = await startCluster(processes, { settings: { track_commit_timestamp: 'on' } })
  const receiver = await startReceiver(processes)
  const load = await startLoad(processes)
  await using together = await cluster.create('together')
  await using apart = await cluster.create('apart')
  const one = await startSetUp({ processes, world: together, receiver, load, apart: false })
  const two = await startSetUp({ processes, world: apart, receiver, load, apart: true })
  const direct = await processes.start({
    name: 'direct',
    file: import.meta.resolve('../programs/direct.ts'),
    args: [together.connectionString],
  })

  async function measureDirectly(rate: number, forSeconds: number): Promise<Measured> {
    await receiver.reset('arrivals')
    const options = { origin: receiver.url, path, rate, seconds: forSeconds }
    const sent = await direct.ask('run', options, z.number())
    return latenciesOf({ world: together, table: 'direct', receiver, expected: sent, seconds: forSeconds })
  }

  progress('warming up')
  for (const measure of [one.measure, two.measure, measureDirectly]) await measure(targetRate, Math.min(3, seconds))
  await settleDown(together)
  await settleDown(apart)

  const sides = Object.fromEntries(
    rates.flatMap((rate) => [
      [`one process, ${rate}/s`, { measure: () => one.measure(rate, seconds) }],
      [`apart, ${rate}/s`, { measure: () => two.measure(rate, seconds) }],
      [`directly, ${rate}/s`, { measure: () => measureDirectly(rate, seconds) }],
    ]),
  )
  const measured = await inTurn<string, Measured>(
    context,
    sides,
    ({ p50, p99 }) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
  )
  const measurements: Measurement[] = Object.entries(measured).flatMap(([side, rounds]) => [
    { side, figure: 'p50', unit: 'ms', values: valuesOf(rounds, ({ p50 }) => p50) },
    { side, figure: 'p99', unit: 'ms', values: valuesOf(rounds, ({ p99 }) => p99) },
    { side, figure: 'events', unit: '/s', values: valuesOf(rounds, ({ rate }) => rate) },
  ])
  const targets: Target[] = [`one process, ${targetRate}/s`, `apart, ${targetRate}/s`].flatMap((side) => {
    const rounds = measured[side] ?? []
    const p50 = median(valuesOf(rounds, (value) => value.p50))
    const p99 = median(valuesOf(rounds, (value) => value.p99))
    return [
      { figure: `p50, ${side}`, unit: 'ms', value: p50, goal: { atMost: 10 } },
      { figure: `p99, ${side}`, unit: 'ms', value: p99, goal: { atMost: 50 } },
    ]
  })
  return {
    measurements,
    targets,
    costs: costsOf(measured),
    notes: [
      'The time of a commit is when PostgreSQL begins to make it durable, so that this is part of the latency on all sides.',
      `At ${rates.join(', ')} a second people are added over HTTP, each with one event for one webhook.`,
    ],
  }
}

type SetUp = { measure(rate: number, forSeconds: number): Promise<Measured> }

type SetUpOptions = {
  processes: Processes
  world: World
  receiver: Receiver
  load: Load
  /** True when the API and the worker are two processes. */
  apart: boolean
}

/** Starts the service with one customer, as one process or two. */
async function startSetUp({ processes, world, receiver, load, apart }: SetUpOptions): Promise<SetUp> {
  const [tenant] = await addTenants(world, [{ urls: [receiver.url + path] }])
  if (tenant === undefined) throw new Error('there is no tenant')
  const { url } = await startService(processes, world, apart ? { name: 'API', roles: 'api' } : {})
  if (apart) await startService(processes, world, { name: 'worker', roles: 'worker' })
  const requests = [addSubscriber(tenant)]
  return {
    async measure(rate, forSeconds) {
      await receiver.reset('arrivals')
      const since = new Date()
      const options = { origins: [url], requests, seconds: forSeconds, connections, rate }
      const { latencies } = await load.run(options, 201)
      await untilSettled(world, since)
      return latenciesOf({ world, table: 'events', receiver, expected: latencies.length, seconds: forSeconds })
    },
  }
}

/** Returns the request that causes one event. */
export function addSubscriber({ key }: Tenant) {
  return {
    method: 'POST' as const,
    path: '/v1/subscribers',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"email":"reader-{n}@example.com"}',
  }
}

/** Returns the times from commit to arrival. Throws when fewer events arrived than expected. */
async function latenciesOf({
  world,
  table,
  receiver,
  expected,
  seconds,
}: {
  world: World
  table: 'events' | 'direct'
  receiver: Receiver
  expected: number
  seconds: number
}): Promise<Measured> {
  const arrivals = await receiver.arrivals()
  if (arrivals.length !== expected) throw new Error(`of ${expected} events, ${arrivals.length} came in`)
  const committed = await commitTimes(world, table, arrivals)
  const latencies = arrivals.map(([id, at]) => at - (committed.get(id) ?? Number.NaN))
  return { p50: median(latencies), p99: quantile(latencies, 0.99), rate: expected / seconds }
}

/** Returns the commit times of the rows whose ids arrived. Milliseconds since 1970. Needs `track_commit_timestamp`. */
export async function commitTimes(
  { db }: World,
  table: 'events' | 'direct' | 'subscribers',
  arrivals: readonly (readonly [string, number])[],
): Promise<Map<string, number>> {
  const ids = arrivals.map(([id]) => id)
  const { rows } = await sql<{ id: string; at: number }>`
    SELECT id, (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)::float AS at
    FROM ${sql.table(table)} WHERE id = ANY(${ids}::text[])
  `.execute(db)
  return new Map(rows.map(({ id, at }) => [id, at]))
}
