import { sql } from 'kysely'
import { z } from 'zod'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startCluster, type World } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, appendEvents, settleDown, type Tenant } from '../seed.ts'
import { median } from '../statistics.ts'

/** A URL without a server, since nothing is delivered. */
const url = 'http://127.0.0.1:9/hooks'
const perSecond = { atLeast: 20_000 }

export const fanOut: Benchmark = {
  name: 'fan-out',
  measures: 'committed events → delivery rows with their jobs in the queue, by one worker that delivers nothing',
  baseline: null,
  rounds: 5,
  seconds: 5,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('fanout')
  const [many, few] = await addTenants(world, [webhooks(1_000), webhooks(10)])
  if (many === undefined || few === undefined) throw new Error('there are no tenants')
  const worker = await processes.start({
    name: 'fan-out worker',
    file: import.meta.resolve('../programs/fan-out.ts'),
    args: [world.connectionString],
  })

  /** Fans out all events. Returns rows per second. */
  async function fanOutAll(expected: number): Promise<number> {
    const made = await worker.ask('run', null, z.object({ deliveries: z.number(), seconds: z.number() }))
    if (made.deliveries !== expected) throw new Error(`of ${expected} deliveries, ${made.deliveries} were made`)
    return made.deliveries / made.seconds
  }

  async function append(tenant: Tenant, count: number): Promise<void> {
    const commit = await appendEvents(world, [tenant], count)
    await commit()
  }

  const events = Math.round(10_000 * size)
  const repetitions = Math.max(3, Math.round(seconds * 4))

  /** Fans out several events one by one. Returns the median of their rows per second. */
  async function fanOutOneByOne(tenant: Tenant): Promise<number> {
    const rates: number[] = []
    for (let index = 0; index < repetitions; index++) {
      await append(tenant, 1)
      rates.push(await fanOutAll(1_000))
    }
    return median(rates)
  }

  progress('warming up')
  await fanOutOneByOne(many)
  await append(few, events)
  await fanOutAll(events * 10)

  const sides = await inTurn(
    context,
    {
      'one event to 1,000': {
        prepare: () => empty(world),
        measure: () => fanOutOneByOne(many),
      },
      [`${events} events to 10 each`]: {
        async prepare() {
          await empty(world)
          await append(few, events)
        },
        measure: () => fanOutAll(events * 10),
      },
    },
    (rate) => `${Math.round(rate)} deliveries/s`,
  )

  const entries = Object.entries(sides).map(([side, rounds]) => ({ side, values: valuesOf(rounds, (rate) => rate) }))
  return {
    measurements: entries.map(({ side, values }) => ({ side, figure: 'deliveries made', unit: '/s', values })),
    targets: entries.map(({ side, values }) => ({ figure: side, unit: '/s', value: median(values), goal: perSecond })),
    costs: costsOf(sides),
    notes: [
      `"One event to 1,000" is the median of ${repetitions} events, each on its own, for each round.`,
      'All deliveries go into the queue, as they do where events come in faster than they can be delivered. A worker with room for more keeps those it makes, with the bodies they need: that is part of what drain measures.',
    ],
  }
}

function webhooks(count: number): { urls: string[] } {
  return { urls: Array.from({ length: count }, () => url) }
}

/** Empties the tables, so that all rounds start alike. */
async function empty(world: World): Promise<void> {
  await sql`TRUNCATE deliveries, events, event_positions, event_counters, outbox_rows`.execute(world.db)
  await sql`DELETE FROM pgboss.job WHERE name = 'deliveries'`.execute(world.db)
  await settleDown(world)
}
