import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startBareExpress, startCluster, startLoad, startService } from '../lab.ts'
import { profiling } from '../profile.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, settleDown } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'

const connections = 32

export const api: Benchmark = {
  name: 'api',
  measures: 'GET /v1/webhooks/:id with authentication, rate limit and validation',
  baseline: 'bare Express 5 + pg, the same row',
  rounds: 5,
  seconds: 8,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, rounds, seconds, progress } = context
  const profile = profiling(context, 'api')
  const cluster = await startCluster(processes, profile.cluster)
  await using world = await cluster.create('api')
  const [tenant] = await addTenants(world, [{ urls: ['http://127.0.0.1:9/hooks'] }])
  if (tenant === undefined) throw new Error('there is no tenant')
  await settleDown(world)
  const service = await startService(processes, world, { nodeArgs: profile.nodeArgs })
  const express = await startBareExpress(processes, world, tenant)
  const load = await startLoad(processes)

  const request = {
    method: 'GET' as const,
    path: `/v1/webhooks/${tenant.webhookIds[0]}`,
    headers: { authorization: `Bearer ${tenant.key}` },
  }
  async function measure(origin: string, forSeconds: number) {
    const options = { origins: [origin], requests: [request], seconds: forSeconds, connections }
    const { latencies, seconds: took } = await load.run(options, 200)
    return { rate: latencies.length / took, p99: quantile(latencies, 0.99), count: latencies.length }
  }

  progress('warming up')
  for (const { url } of [service, express]) await measure(url, Math.min(3, seconds))
  await profile.begin(world)
  const sides = await inTurn(
    context,
    {
      service: { measure: () => measure(service.url, seconds) },
      'bare Express': { measure: () => measure(express.url, seconds) },
    },
    ({ rate }) => `${Math.round(rate)} requests/s`,
  )

  const subject = valuesOf(sides.service, ({ rate }) => rate)
  const baseline = valuesOf(sides['bare Express'], ({ rate }) => rate)
  const count = Math.round(median(valuesOf(sides.service, (value) => value.count)) * rounds)
  return {
    measurements: Object.entries(sides).flatMap(([side, measured]) => [
      { side, figure: 'answered', unit: '/s', values: valuesOf(measured, ({ rate }) => rate) },
      { side, figure: 'p99', unit: 'ms', values: valuesOf(measured, ({ p99 }) => p99) },
    ]),
    targets: [{ figure: 'service to bare Express', value: ratio(subject, baseline), goal: { atLeast: 0.6 } }],
    costs: costsOf(sides),
    notes: [
      `${connections} connections ask without a pause, each for the same webhook.`,
      ...(await profile.end(world, service, { what: 'request', count })),
    ],
  }
}
