import { setTimeout as delay } from 'node:timers/promises'
import type { Benchmark, BenchmarkContext, Measurement, Outcome, Target } from '../benchmark.ts'
import { startCluster, startLoad, startReceiver, startService } from '../lab.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn } from '../rounds.ts'
import { addAudience, addTenants, appendEvents, untilSettled } from '../seed.ts'
import { type Size, sizesOf } from '../sizes.ts'
import { lateGrowth } from '../statistics.ts'
import { addContact, connections, events } from './flow.ts'

/** Retention as a share of the time of the requests: two minutes of ten. Retention runs every minute. */
const retentionPart = 1 / 5
/** Number of parts whose requests are counted separately, to show a lower rate at the end. */
const parts = 10
const warmUpSeconds = 3
const samplingSeconds = 5
/** Tables and indexes that stay below this size are not reported. */
const judgedBytes = 2 ** 20
/** Goal for the maximum of the last third divided by the maximum of the third before. */
const level = { atMost: 1.1 }
const side = 'service'

export const soak: Benchmark = {
  name: 'soak',
  measures: 'flow for ten minutes, with retention set to two minutes',
  baseline: null,
  rounds: 1,
  seconds: 600,
  run,
}

/** The sizes of a table or its indexes over time. */
type Series = { name: string; isKept: boolean; values: number[] }

type Measured = {
  series: Series[]
  /** Responses per second in each part of the time. */
  rates: number[]
  count: number
  /** Seconds until all deliveries were done after the last request. */
  catchUp: number
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('soak')
  const receiver = await startReceiver(processes)
  const [tenant, failing] = await addTenants(world, [
    { urls: [`${receiver.url}/ok/0`], events },
    { urls: [`${receiver.url}/status-500/0`] },
  ])
  if (tenant === undefined || failing === undefined) throw new Error('there is no tenant')
  const audienceId = await addAudience(world, tenant)
  const commitOne = await appendEvents(world, [failing], 1)
  await commitOne()
  const retentionSeconds = seconds * retentionPart
  const service = await startService(processes, world, {
    env: { RETENTION_DAYS: (retentionSeconds / 86_400).toFixed(8) },
  })
  const load = await startLoad(processes)
  const requests = [addContact(tenant, audienceId)]

  async function send(forSeconds: number): Promise<{ count: number; rate: number }> {
    const options = { origins: [service.url], requests, seconds: forSeconds, connections }
    const { latencies, seconds: took } = await load.run(options, 201)
    return { count: latencies.length, rate: latencies.length / took }
  }

  async function sample(series: Map<string, Series>): Promise<void> {
    const memory = { name: 'memory of the service', bytes: await service.memory(), isKept: false }
    const sizes: Size[] = [memory, ...(await sizesOf(world.db))]
    for (const { name, bytes, isKept } of sizes) {
      const one = series.get(name) ?? { name, isKept, values: [] }
      one.values.push(bytes)
      series.set(name, one)
    }
    const largest = sizes.toSorted((a, b) => b.bytes - a.bytes).slice(0, 4)
    progress(largest.map(({ name, bytes }) => `${name} ${(bytes / 2 ** 20).toFixed(1)} MiB`).join(', '))
  }

  async function measure(): Promise<Measured> {
    await receiver.reset('nothing')
    const since = new Date()
    const series = new Map<string, Series>()
    const rates: number[] = []
    let count = 0
    const ended = new AbortController()

    async function sendAll(): Promise<void> {
      for (let part = 0; part < parts; part++) {
        const sent = await send(seconds / parts)
        count += sent.count
        rates.push(sent.rate)
      }
    }
    async function sampleAll(): Promise<void> {
      while (!ended.signal.aborted) {
        await sample(series)
        await delay(samplingSeconds * 1000, undefined, { signal: ended.signal }).catch(() => undefined)
      }
    }

    await Promise.all([sendAll().finally(() => ended.abort()), sampleAll()])
    const stopped = performance.now()
    await untilSettled(world, since)
    const catchUp = (performance.now() - stopped) / 1000
    const delivered = await receiver.count('ok')
    const expected = count * events.length
    if (delivered !== expected) throw new Error(`of ${expected} deliveries, ${delivered} came in`)
    return { series: [...series.values()], rates, count, catchUp }
  }

  progress('warming up')
  const warmUp = await send(Math.min(warmUpSeconds, seconds))
  await receiver.until('ok', warmUp.count * events.length)
  const sides = await inTurn(
    context,
    { [side]: { measure } },
    ({ count, catchUp }) => `${count} requests, ${catchUp.toFixed(1)} s to catch up`,
  )
  const measured = sides[side]?.[0]?.value
  if (measured === undefined) throw new Error('nothing was measured')
  const { rates, count, catchUp } = measured
  const large = measured.series.filter(({ values }) => Math.max(...values) >= judgedBytes)
  return {
    measurements: [
      { side, figure: 'requests answered', unit: '/s', values: rates },
      { side, figure: 'catching up after the last', unit: 's', values: [catchUp] },
      ...large.map(sizeOf),
    ],
    targets: large.filter(({ isKept }) => !isKept).map(growthOf),
    costs: costsOf(sides),
    notes: [
      `${connections} connections send the requests of flow without a pause: ${count}, each with two events, and all were delivered. In the first tenth of the time ${rateAt(rates, 0)} a second were answered, in the last ${rateAt(rates, -1)}.`,
      `Retention is ${Math.round(retentionSeconds)} s, and once a minute what is past it is deleted. One delivery older than all others waits for its retries the whole time.`,
      'People and their contacts are nothing that retention is for: they are kept until somebody deletes them, so their tables grow with every request, and are told of but not judged. Sizes of tables are with TOAST.',
    ],
  }
}

function sizeOf({ name, values }: Series): Measurement {
  return { side: name, figure: 'size', unit: 'MiB', values: values.map((bytes) => bytes / 2 ** 20) }
}

function growthOf({ name, values }: Series): Target {
  return { figure: `${name}: last third to the third before`, value: lateGrowth(values), goal: level }
}

function rateAt(rates: readonly number[], index: number): string {
  return formatNumber(rates.at(index) ?? Number.NaN)
}
