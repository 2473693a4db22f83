import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Load, type Service, startCluster, startLoad, startService, type World } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown, type Tenant } from '../seed.ts'
import { pairedRatio, quantile } from '../statistics.ts'

const connections = 32
const processCount = 4
/** Requests per minute, used up well before the minute is over. */
const sharedLimit = 3_000
const windowMs = 60_000
/** Seconds of load on all processes before and after the start of a window. */
const aroundTheTurn = 6

export const rateLimit: Benchmark = {
  name: 'rate-limit',
  measures: 'GET /v1/webhooks/:id with the rate limiter; and four processes on the limit of one account',
  baseline: 'the same without the limiter',
  // Many short rounds, because so small a difference only shows between neighbouring pairs.
  rounds: 24,
  seconds: 2,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('ratelimit')
  const [tenant, limited] = await addTenants(world, [
    { urls: ['http://127.0.0.1:9/hooks'] },
    { urls: ['http://127.0.0.1:9/hooks'], plan: 'pro' },
  ])
  if (tenant === undefined || limited === undefined) throw new Error('there are no tenants')
  await settleDown(world)
  const load = await startLoad(processes)
  const counting = await startService(processes, world, { name: 'with limiter', roles: 'api' })
  const free = await startService(processes, world, {
    name: 'without limiter',
    roles: 'api',
    nodeArgs: ['--import', import.meta.resolve('../programs/no-rate-limit.ts')],
  })

  async function measure({ url }: Service, forSeconds: number) {
    const options = { origins: [url], requests: [readWebhook(tenant)], seconds: forSeconds, connections }
    const { latencies, seconds: took } = await load.run(options, 200)
    return { rate: latencies.length / took, p99: quantile(latencies, 0.99) }
  }

  progress('warming up')
  for (const service of [counting, free]) await measure(service, Math.min(3, seconds))
  const sides = await inTurn(
    context,
    {
      'with limiter': { measure: () => measure(counting, seconds) },
      'without limiter': { measure: () => measure(free, seconds) },
    },
    ({ rate }) => `${Math.round(rate)} requests/s`,
  )
  await Promise.all([counting.stop(), free.stop()])

  const windows = await exhaust(context, { world, load, tenant: limited })
  const on = valuesOf(sides['with limiter'], ({ rate }) => rate)
  const off = valuesOf(sides['without limiter'], ({ rate }) => rate)
  return {
    measurements: Object.entries(sides).flatMap(([side, measured]) => [
      { side, figure: 'answered', unit: '/s', values: valuesOf(measured, ({ rate }) => rate) },
      { side, figure: 'p99', unit: 'ms', values: valuesOf(measured, ({ p99 }) => p99) },
    ]),
    targets: [
      { figure: 'what the limiter costs', unit: '%', value: (1 - pairedRatio(on, off)) * 100, goal: { atMost: 5 } },
      {
        figure: `most requests let in within a window, of ${sharedLimit}`,
        value: Math.max(...windows.map(({ allowed }) => allowed)),
        goal: { atMost: sharedLimit },
      },
    ],
    costs: costsOf(sides),
    notes: [
      'What the limiter costs is the median of what it costs in each round, where the two sides follow one another: it is not made of the medians of the sides, each of which may come from another moment of the machine.',
      ...windows.map(
        ({ allowed, refused }, index) =>
          `${processCount} processes, window ${index + 1}: ${allowed} requests let in, ${refused} refused.`,
      ),
    ],
  }
}

function readWebhook(tenant: Tenant | undefined) {
  if (tenant === undefined) throw new Error('there is no tenant')
  const { key, webhookIds } = tenant
  return {
    method: 'GET' as const,
    path: `/v1/webhooks/${webhookIds[0]}`,
    headers: { authorization: `Bearer ${key}` },
  }
}

/**
 * Sends more requests of one account to several processes than its limit, around the start of a window. Returns the
 * results of each window.
 */
async function exhaust(
  { processes, progress }: BenchmarkContext,
  { world, load, tenant }: { world: World; load: Load; tenant: Tenant },
): Promise<{ allowed: number; refused: number }[]> {
  const env = { RATE_LIMITS: `pro=${sharedLimit}` }
  const services = await Promise.all(
    Array.from({ length: processCount }, () =>
      startService(processes, world, { name: 'one of four', roles: 'api', env }),
    ),
  )
  const left = (windowMs - (Date.now() % windowMs)) / 1000
  const seconds = left + aroundTheTurn
  progress(`${processCount} processes on one limit, for ${Math.round(seconds)} s: until the window has turned`)
  const { statuses } = await load.run(
    {
      origins: services.map(({ url }) => url),
      requests: [readWebhook(tenant)],
      seconds,
      connections: connections / processCount,
      rate: 2_000,
      groupBy: 'x-ratelimit-reset',
    },
    null,
  )
  const windows = Map.groupBy(statuses, ({ group }) => group)
  return [...windows.values()].map((entries) => {
    const count = (status: number) => entries.find((entry) => entry.status === status)?.count ?? 0
    return { allowed: count(200), refused: count(429) }
  })
}
