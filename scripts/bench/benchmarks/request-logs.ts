import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type LoadOptions, type Service, startCluster, startLoad, startService } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown } from '../seed.ts'
import { pairedRatio, quantile } from '../statistics.ts'

const connections = 32

export const requestLogs: Benchmark = {
  name: 'request-logs',
  measures: 'GET /v1/webhooks/:id, the cheapest request, and POST /v1/subscribers, with request logs',
  baseline: 'the same with REQUEST_LOGS=false',
  // Many short rounds, because so small a difference only shows between neighbouring pairs.
  rounds: 16,
  seconds: 4,
  run,
}

type RequestName = 'GET' | 'POST'

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
  const headers = { authorization: `Bearer ${tenant.key}` }
  const requests: Record<RequestName, LoadOptions['requests'][number]> = {
    GET: { method: 'GET', path: `/v1/webhooks/${tenant.webhookIds[0]}`, headers },
    POST: {
      method: 'POST',
      path: '/v1/subscribers',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"email":"person-{n}@example.com"}',
    },
  }

  async function measure({ url }: Service, name: RequestName, forSeconds: number) {
    const options = { origins: [url], requests: [requests[name]], seconds: forSeconds, connections }
    const { latencies, seconds: took } = await load.run(options, name === 'GET' ? 200 : 201)
    return { rate: latencies.length / took, p99: quantile(latencies, 0.99), count: latencies.length }
  }

  progress('warming up')
  for (const service of [logging, silent]) {
    for (const name of ['GET', 'POST'] as const) await measure(service, name, Math.min(3, seconds))
  }
  // Neighbours of one request are compared.
  const sides = await inTurn(
    context,
    {
      'GET with request logs': { measure: () => measure(logging, 'GET', seconds) },
      'GET without': { measure: () => measure(silent, 'GET', seconds) },
      'POST with request logs': { measure: () => measure(logging, 'POST', seconds) },
      'POST without': { measure: () => measure(silent, 'POST', seconds) },
    },
    ({ rate }) => `${Math.round(rate)} requests/s`,
  )
  await Promise.all([logging.stop(), silent.stop()])

  const costOf = (name: RequestName) => {
    const on = valuesOf(sides[`${name} with request logs`], ({ rate }) => rate)
    const off = valuesOf(sides[`${name} without`], ({ rate }) => rate)
    return (1 - pairedRatio(on, off)) * 100
  }
  return {
    measurements: Object.entries(sides).flatMap(([side, measured]) => [
      { side, figure: 'answered', unit: '/s', values: valuesOf(measured, ({ rate }) => rate) },
      { side, figure: 'p99', unit: 'ms', values: valuesOf(measured, ({ p99 }) => p99) },
    ]),
    targets: [
      { figure: 'what request logs cost, GET', unit: '%', value: costOf('GET'), goal: { atMost: 3 } },
      { figure: 'what request logs cost, POST', unit: '%', value: costOf('POST'), goal: { atMost: 3 } },
    ],
    costs: costsOf(sides),
    notes: [
      `${connections} connections ask without a pause. GET reads one webhook, POST adds a person, with the event of it, each time. Each request becomes a row.`,
      'What request logs cost is the median of what they cost in each round, where the two sides follow one another.',
    ],
  }
}
