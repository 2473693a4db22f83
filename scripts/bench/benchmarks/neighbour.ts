import { writeBacklog } from '../backlog-rows.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startCluster, startLoad, startReceiver, startService } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'
import { addSubscriber, commitTimes } from './latency.ts'

const healthyCount = 20
/** Events a second for the healthy webhooks in all. Each of the two others gets as many as one of them. */
const healthyRate = 200
const pending = 100_000
const connections = 256
/** A hang is as long as the service waits at most. */
const hanging = 'after-30000'
const failing = 'status-500'
/** What the healthy webhooks may need after the last request before it counts as not delivered. */
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
  const cluster = await startCluster(processes, { settings: { track_commit_timestamp: 'on' } })
  const receiver = await startReceiver(processes)
  const load = await startLoad(processes)

  const alone = await cluster.create('alone')
  const kinds = [...Array.from({ length: healthyCount }, (_, index) => `ok/${index}`), `${hanging}/0`, `${failing}/0`]
  const tenants = await addTenants(
    alone,
    kinds.map((kind) => ({ urls: [`${receiver.url}/${kind}`] })),
  )
  const healthy = tenants.slice(0, healthyCount)
  const hangingTenant = tenants.at(-2)
  if (hangingTenant === undefined) throw new Error('there is nobody who hangs')
  await settleDown(alone)
  await alone.close()

  // The hanging one's deliveries wait before all others: they are older.
  const beside = await cluster.copy('alone', 'beside')
  const count = Math.round(pending * size)
  progress(`preparing ${count.toLocaleString('en')} deliveries to the webhook that hangs`)
  const { accountId, webhookIds } = hangingTenant
  await writeBacklog(
    beside,
    {
      count,
      webhooks: webhookIds.map((webhookId) => ({ accountId, webhookId })),
      firstAt: new Date(Date.now() - count),
      everyMs: 1,
      retryAt: null,
    },
    progress,
  )
  await settleDown(beside)
  await beside.close()

  /** Each round begins with the same database, and a service started on it. */
  async function measure(template: string, served: typeof tenants): Promise<Measured> {
    await using world = await cluster.copy(template, `${template}_round`)
    try {
      await using service = await startService(processes, world, { name: `service, ${template}` })
      const requests = served.map(addSubscriber)
      const rate = (healthyRate / healthyCount) * served.length
      await receiver.reset('arrivals')
      const options = { origins: [service.url], requests, seconds, connections, rate }
      const { latencies } = await load.run(options, 201)
      const expected = Math.floor((latencies.length * healthyCount) / served.length)
      await Promise.race([
        receiver.until('ok', expected),
        new Promise((resolve) => setTimeout(resolve, patienceMs).unref()),
      ])
      return await healthyLatencies(world, expected)
    } finally {
      await world.close()
      await cluster.drop(world.name)
    }
  }

  async function healthyLatencies(world: Parameters<typeof commitTimes>[0], expected: number): Promise<Measured> {
    const accounts = healthy.map((tenant) => tenant.accountId)
    const rows = await world.db.selectFrom('events').select('id').where('account_id', 'in', accounts).execute()
    const theirs = new Set(rows.map(({ id }) => id))
    const arrivals = (await receiver.arrivals()).filter(([id]) => theirs.has(id))
    const committed = await commitTimes(world, 'events', arrivals)
    const latencies = arrivals.map(([id, at]) => at - (committed.get(id) ?? Number.NaN))
    progress(`${arrivals.length} of about ${expected} deliveries to healthy webhooks came in`)
    return { p50: median(latencies), p99: quantile(latencies, 0.99), rate: arrivals.length / seconds }
  }

  const sides = await inTurn(
    context,
    {
      'beside the two': { measure: () => measure('beside', tenants) },
      alone: { measure: () => measure('alone', healthy) },
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
      `A round begins with the start of the service: the time in which it finds out about the webhook that hangs, with ${count.toLocaleString('en')} deliveries before all others, is part of it.`,
    ],
  }
}
