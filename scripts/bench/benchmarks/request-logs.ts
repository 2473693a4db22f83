import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Service, startCluster, startLoad, startService } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown } from '../seed.ts'
import { pairedRatio, quantile } from '../statistics.ts'

const connections = 32

export const requestLogs: Benchmark = {
  name: 'request-logs',
  measures: 'GET /v1/webhooks/:id, the cheapest request, with request logs',
  baseline: 'the same with REQUEST_LOGS=false',
  // Many short rounds, because so small a difference only shows between neighbouring pairs.
  rounds: 24,
  seconds: 4,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('requestlogs')
  const [tenant] = await addTenants(world, [{ urls: ['http://127.0.0.1:9/hooks'] }])
  if (tenant === undefined) throw new Error('there is no tenant')
  await settleDown(world)
  const load = await startLoad(processes)
  const logging = await startService(processes, world, { name: 'with request logs', roles: 'api' })
  const silent = await startService(processes, world, {
    name: 'without request logs',
    roles: 'api',
    env: { REQUEST_LOGS: 'false' },
  })
  const request = {
    method: 'GET' as const,
    path: `/v1/webhooks/${tenant.webhookIds[0]}`,
    headers: { authorization: `Bearer ${tenant.key}` },
  }

  async function measure({ url }: Service, forSeconds: number) {
    const options = { origins: [url], requests: [request], seconds: forSeconds, connections }
    const { latencies, seconds: took } = await load.run(options, 200)
    return { rate: latencies.length / took, p99: quantile(latencies, 0.99), count: latencies.length }
  }

  progress('warming up')
  for (const service of [logging, silent]) await measure(service, Math.min(3, seconds))
  const sides = await inTurn(
    context,
    {
      'with request logs': { measure: () => measure(logging, seconds) },
      'without request logs': { measure: () => measure(silent, seconds) },
    },
    ({ rate }) => `${Math.round(rate)} requests/s`,
  )
  await Promise.all([logging.stop(), silent.stop()])

  const on = valuesOf(sides['with request logs'], ({ rate }) => rate)
  const off = valuesOf(sides['without request logs'], ({ rate }) => rate)
  return {
    measurements: Object.entries(sides).flatMap(([side, measured]) => [
      { side, figure: 'answered', unit: '/s', values: valuesOf(measured, ({ rate }) => rate) },
      { side, figure: 'p99', unit: 'ms', values: valuesOf(measured, ({ p99 }) => p99) },
    ]),
    targets: [
      { figure: 'what request logs cost', unit: '%', value: (1 - pairedRatio(on, off)) * 100, goal: { atMost: 3 } },
    ],
    costs: costsOf(sides),
    notes: [
      `${connections} connections ask without a pause, each for the same webhook. Each request becomes a row.`,
      'What request logs cost is the median of what they cost in each round, where the two sides follow one another.',
    ],
  }
}
