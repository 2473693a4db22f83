import { sql } from 'kysely'
import { z } from 'zod'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startCluster, startReceiver, startService, type World } from '../lab.ts'
import { profiling } from '../profile.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, appendEvents, settleDown, timeDelivery } from '../seed.ts'
import { median, ratio } from '../statistics.ts'

/** Accounts with one webhook each: enough that no webhook reaches its own limit. */
const tenantCount = 10
/** Requests in flight of the baseline: as many as the service has for fresh deliveries. */
const connections = 192
/** Approximate deliveries per second, which determine the events of a round. */
const expectedRate = 6_000

export const drain: Benchmark = {
  name: 'drain',
  measures: 'committed events in the outbox → delivered and settled, by one process',
  baseline: 'bare undici POSTs of the same bytes to the same receiver',
  rounds: 5,
  seconds: 8,
  run,
}

type Measured = { rate: number; walBytes: number; connections: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, rounds, seconds, progress } = context
  const profile = profiling(context, 'drain')
  const cluster = await startCluster(processes, profile.cluster)
  await using world = await cluster.create('drain')
  const receiver = await startReceiver(processes)
  const paths = Array.from({ length: tenantCount }, (_, index) => `/ok/${index}`)
  const tenants = await addTenants(
    world,
    paths.map((path) => ({ urls: [receiver.url + path] })),
  )
  const service = await startService(processes, world, { nodeArgs: profile.nodeArgs })
  const poster = await processes.start({ name: 'bare POSTs', file: import.meta.resolve('../programs/bare-post.ts') })

  const count = Math.round(expectedRate * seconds)
  let since = new Date()
  let commit: () => Promise<void> = async () => undefined

  async function prepare(events: number): Promise<void> {
    await settleDown(world)
    await receiver.reset('nothing')
    since = new Date()
    commit = await appendEvents(world, tenants, events)
  }

  async function load(events: number): Promise<void> {
    await poster.ask('load', { connectionString: world.connectionString, count: events }, z.literal(events))
  }

  /** Posts the loaded bodies. Returns the seconds that it took. */
  async function post(): Promise<number> {
    const request = { origin: receiver.url, paths, connections }
    const { seconds: took } = await poster.ask('run', request, z.object({ seconds: z.number() }))
    return took
  }

  progress(`warming up, then ${count} events a round`)
  const warmUpCount = Math.ceil(count / 4)
  await prepare(warmUpCount)
  await timeDelivery(world, { since, commit, arrived: () => receiver.until('ok', warmUpCount) })
  await load(warmUpCount)
  await post()
  await profile.begin(world)

  const sides = await inTurn<'service' | 'bare POSTs', Measured>(
    context,
    {
      service: {
        prepare: () => prepare(count),
        async measure() {
          const before = await walPosition(world)
          const took = await timeDelivery(world, { since, commit, arrived: () => receiver.until('ok', count) })
          const received = await receiver.count('ok')
          if (received !== count) throw new Error(`of ${count} deliveries, ${received} came in`)
          const opened = await receiver.connections()
          return { rate: count / took, walBytes: (await walPosition(world)) - before, connections: opened }
        },
      },
      'bare POSTs': {
        prepare: () => load(count),
        async measure() {
          return { rate: count / (await post()), walBytes: 0, connections }
        },
      },
    },
    ({ rate }) => `${Math.round(rate)} deliveries/s`,
  )

  const subject = valuesOf(sides.service, ({ rate }) => rate)
  const baseline = valuesOf(sides['bare POSTs'], ({ rate }) => rate)
  const walBytes = median(valuesOf(sides.service, (value) => value.walBytes))
  const opened = median(valuesOf(sides.service, (value) => value.connections))
  return {
    measurements: [
      { side: 'service', figure: 'delivered and settled', unit: '/s', values: subject },
      { side: 'bare POSTs', figure: 'posted', unit: '/s', values: baseline },
    ],
    targets: [{ figure: 'service to bare POSTs', value: ratio(subject, baseline), goal: { atLeast: 0.4 } }],
    costs: costsOf(sides),
    notes: [
      `A round is ${count} events for ${tenantCount} webhooks.`,
      `The write-ahead log grows by ${Math.round(walBytes / count)} bytes for each delivery.`,
      `The service opens ${formatNumber((opened / count) * 1000)} connections for a thousand deliveries, all to one origin.`,
      ...(await profile.end(world, service, { what: 'delivery', count: count * rounds })),
    ],
  }
}

/** Returns the position in the write-ahead log: the bytes written to it so far. */
export async function walPosition({ db }: World): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`
    SELECT (pg_current_wal_lsn() - '0/0')::float AS bytes
  `.execute(db)
  return rows[0]?.bytes ?? 0
}
