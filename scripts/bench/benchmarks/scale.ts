import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startCluster, startReceiver, startService } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, appendEvents, settleDown, timeDelivery } from '../seed.ts'
import { median, ratio } from '../statistics.ts'

const processCounts = [1, 2, 4] as const
/** Requests in flight in one process. */
const concurrency = 32
/** The receiver responds after 20 ms. */
const kind = 'after-20'
/** Enough that no webhook reaches its own limit. */
const tenantCount = 16
/** Approximate deliveries per second of a process, which determine the events of a round. */
const expectedRate = 1_000

export const scale: Benchmark = {
  name: 'scale',
  measures: `1, 2 and 4 worker processes on one database, each held to ${concurrency} requests in flight, to a receiver that answers after 20 ms`,
  baseline: 'one process',
  rounds: 3,
  seconds: 8,
  run,
}

type Measured = { rate: number; doubled: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('scale')
  const receiver = await startReceiver(processes)
  const tenants = await addTenants(
    world,
    Array.from({ length: tenantCount }, (_, index) => ({ urls: [`${receiver.url}/${kind}/${index}`] })),
  )

  async function measure(count: number): Promise<Measured> {
    const env = { DELIVERY_PLACES: String(concurrency) }
    await using started = new AsyncDisposableStack()
    await Promise.all(
      Array.from({ length: count }, async () => {
        started.use(await startService(processes, world, { name: 'worker', roles: 'worker', env }))
      }),
    )
    // The first batch warms up the processes.
    for (const part of [0.25, 1]) {
      const events = Math.round(expectedRate * seconds * count * part)
      await receiver.reset('ids')
      const since = new Date()
      const commit = await appendEvents(world, tenants, events)
      const took = await timeDelivery(world, { since, commit, arrived: () => receiver.until(kind, events) })
      if (part < 1) continue
      const received = await receiver.count(kind)
      const doubled = await receiver.duplicates()
      if (received - doubled !== events) throw new Error(`of ${events} deliveries, ${received - doubled} came in`)
      return { rate: events / took, doubled }
    }
    throw new Error('nothing was measured')
  }

  const sides = await inTurn<string, Measured>(
    context,
    Object.fromEntries(
      processCounts.map((count) => [
        nameOf(count),
        { prepare: () => settleDown(world), measure: () => measure(count) },
      ]),
    ),
    ({ rate, doubled }) => `${Math.round(rate)} deliveries/s, ${doubled} doubled`,
  )
  const rates = (count: number) => valuesOf(sides[nameOf(count)] ?? [], ({ rate }) => rate)
  const doubled = Object.values(sides).flatMap((rounds) => valuesOf(rounds, (value) => value.doubled))
  return {
    measurements: processCounts.map((count) => ({
      side: nameOf(count),
      figure: 'delivered and settled',
      unit: '/s',
      values: rates(count),
    })),
    targets: [
      { figure: '2 processes to one', value: ratio(rates(2), rates(1)), goal: { atLeast: 1.8 } },
      { figure: '4 processes to one', value: ratio(rates(4), rates(1)), goal: { atLeast: 3 } },
      { figure: 'deliveries doubled, most in a round', value: Math.max(...doubled), goal: { atMost: 0 } },
    ],
    costs: costsOf(sides),
    notes: [
      `One process makes ${Math.round(median(rates(1)))} deliveries a second; ${concurrency} requests of 20 ms allow ${concurrency * 50}.`,
      'CPU is that of all workers of a round together, with their start and warm-up; peak memory is that of the one worker that had most.',
    ],
  }
}

function nameOf(count: number): string {
  return count === 1 ? '1 process' : `${count} processes`
}
