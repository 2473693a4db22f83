import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import { putJobsBack, setJobsAside, writeBacklog } from '../backlog-rows.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startCluster, startLoad, startReceiver, startService, type World } from '../lab.ts'
import { profiling } from '../profile.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'
import { addSubscriber, commitTimes } from './latency.ts'

const healthyCount = 20
/** Events per second for all healthy webhooks together. Each of the two others gets as many as one of them. */
const healthyRate = 200
const pending = 100_000
const connections = 256
/** Long enough that the service no longer gets faster. */
const warmUpSeconds = 10
/** Hangs as long as the time limit of the service. */
const hanging = 'after-30000'
const failing = 'status-500'
const hourMs = 3_600_000
/** Approximate time of a round in addition to its seconds. */
const aroundMs = 20_000
/** Milliseconds to wait for the healthy webhooks after the last request; later deliveries count as missing. */
const patienceMs = 5_000

export const neighbour: Benchmark = {
  name: 'neighbour',
  measures: `${healthyCount} healthy webhooks at ${healthyRate} events/s while one hangs for 30 s on each of ${pending.toLocaleString('en')} pending deliveries, and one answers 500 to all`,
  baseline: 'the same without those two',
  rounds: 3,
  seconds: 30,
  run,
}

type Measured = { p50: number; p99: number; rate: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const profile = profiling(context, 'neighbour')
  const { settings } = profile.cluster
  const cluster = await startCluster(processes, {
    ...profile.cluster,
    settings: { ...settings, track_commit_timestamp: 'on' },
  })
  const receiver = await startReceiver(processes)
  const load = await startLoad(processes)

  const prepared = await cluster.create('prepared')
  const kinds = [...Array.from({ length: healthyCount }, (_, index) => `ok/${index}`), `${hanging}/0`, `${failing}/0`]
  const tenants = await addTenants(
    prepared,
    kinds.map((kind) => ({ urls: [`${receiver.url}/${kind}`] })),
  )
  const healthy = tenants.slice(0, healthyCount)
  const hangingTenant = tenants.at(-2)
  if (hangingTenant === undefined) throw new Error('there is nobody who hangs')
  const count = Math.round(pending * size)
  // Older than all others. Written in advance, because only waiting for them is measured.
  const webhooks = hangingTenant.webhookIds.map((webhookId) => ({ accountId: hangingTenant.accountId, webhookId }))
  const firstAt = new Date(Date.now() - count)
  await writeBacklog(prepared, { count, webhooks, firstAt, everyMs: 1, retryAt: null }, progress)
  await setJobsAside(prepared)
  await settleDown(prepared)
  await prepared.close()

  /** Queues the deliveries of the webhook that hangs in an open transaction. Returns the function that commits it. */
  async function pendingDeliveries(world: World): Promise<() => Promise<void>> {
    const trx = await world.db.startTransaction().execute()
    await putJobsBack(world, trx)
    return async () => {
      await trx.commit().execute()
    }
  }

  let profiled: string[] = []

  /** Waits past a full hour, when reconciliation would find the deliveries without jobs in the other database. */
  async function untilHourIsFar(): Promise<void> {
    const left = hourMs - (Date.now() % hourMs)
    if (left > seconds * 1_000 + aroundMs) return
    progress('waiting for the full hour to pass, in which the service looks through all that waits')
    await setTimeout(left + 1_000)
  }

  /** Measures one side on a fresh copy of the database with a new service. */
  async function measure(side: 'beside' | 'alone'): Promise<Measured> {
    await untilHourIsFar()
    const world = await cluster.copy(prepared.name, side)
    try {
      const nodeArgs = side === 'beside' ? profile.nodeArgs : []
      await using service = await startService(processes, world, { name: `service, ${side}`, nodeArgs })
      const send = (to: typeof tenants, forSeconds: number) => {
        const rate = (healthyRate / healthyCount) * to.length
        const requests = to.map(addSubscriber)
        return load.run({ origins: [service.url], requests, seconds: forSeconds, connections, rate }, 201)
      }
      await send(healthy, warmUpSeconds)
      const commit = side === 'beside' ? await pendingDeliveries(world) : async () => undefined
      await sql`CHECKPOINT`.execute(world.db)
      await profile.begin(world)
      await receiver.reset('arrivals')
      await commit()
      const served = side === 'beside' ? tenants : healthy
      const { latencies } = await send(served, seconds)
      const expected = Math.floor((latencies.length * healthyCount) / served.length)
      const patience = setTimeout(patienceMs, undefined, { ref: false })
      await Promise.race([receiver.until('ok', expected), patience])
      const measured = await healthyLatencies(world)
      if (side === 'beside') {
        profiled = await profile.end(world, service, { what: 'delivery', count: Math.round(measured.rate * seconds) })
      }
      return measured
    } finally {
      await world.close()
      await cluster.drop(world.name)
    }
  }

  async function healthyLatencies(world: World): Promise<Measured> {
    const accounts = healthy.map(({ accountId }) => accountId)
    const events = await world.db.selectFrom('events').select('id').where('account_id', 'in', accounts).execute()
    const theirs = new Set(events.map(({ id }) => id))
    const arrivals = (await receiver.arrivals()).filter(([id]) => theirs.has(id))
    const committed = await commitTimes(world, 'events', arrivals)
    const latencies = arrivals.map(([id, at]) => at - (committed.get(id) ?? Number.NaN))
    return { p50: median(latencies), p99: quantile(latencies, 0.99), rate: arrivals.length / seconds }
  }

  const sides = await inTurn(
    context,
    {
      'beside the two': { measure: () => measure('beside') },
      alone: { measure: () => measure('alone') },
    },
    ({ p50, p99, rate }) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ${rate.toFixed(1)} deliveries/s`,
  )
  const subject = sides['beside the two']
  const p99 = ratio(
    valuesOf(subject, (value) => value.p99),
    valuesOf(sides.alone, (value) => value.p99),
  )
  const throughput = ratio(
    valuesOf(subject, ({ rate }) => rate),
    valuesOf(sides.alone, ({ rate }) => rate),
  )
  return {
    measurements: Object.entries(sides).flatMap(([side, measured]) => [
      { side, figure: 'p50', unit: 'ms', values: valuesOf(measured, (value) => value.p50) },
      { side, figure: 'p99', unit: 'ms', values: valuesOf(measured, (value) => value.p99) },
      { side, figure: 'delivered to the healthy', unit: '/s', values: valuesOf(measured, ({ rate }) => rate) },
    ]),
    targets: [
      { figure: 'p99 beside the two to p99 alone', value: p99, goal: { atMost: 2 } },
      { figure: 'throughput beside the two to alone', value: throughput, goal: { atLeast: 0.9 } },
    ],
    costs: costsOf(sides),
    notes: [
      `The ${count.toLocaleString('en')} deliveries to the webhook that hangs come into the queue, before all others, at the moment at which a round begins: finding out about it is part of the round. Alone, they are in the database too, but not in the queue.`,
      ...profiled,
    ],
  }
}
