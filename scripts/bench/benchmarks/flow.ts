import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { startBareExpress, startCluster, startLoad, startReceiver, startService } from '../lab.ts'
import { profiling } from '../profile.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addAudience, addTenants, settleDown, type Tenant, untilSettled } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'

/** Requests in flight. */
export const connections = 32
/** The events of adding a new person to an audience. Each is delivered. */
export const events = ['subscriber.added', 'contact.created'] as const
/** Goal for the time of deliveries after the last request, as a share of the time of the requests. */
const catchUpGoal = { atMost: 0.1 }

export const flow: Benchmark = {
  name: 'flow',
  measures: 'POST …/contacts with a key, each a transaction with its two events → delivered, all in one process',
  baseline: 'the same inserts by a bare Express 5 + pg route, without events or delivery',
  rounds: 5,
  seconds: 10,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, rounds, seconds, progress } = context
  const profile = profiling(context, 'flow')
  const cluster = await startCluster(processes, profile.cluster)
  await using world = await cluster.create('flow')
  const receiver = await startReceiver(processes)
  const [tenant] = await addTenants(world, [{ urls: [`${receiver.url}/ok/0`], events }])
  if (tenant === undefined) throw new Error('there is no tenant')
  const audienceId = await addAudience(world, tenant)
  const service = await startService(processes, world, { nodeArgs: profile.nodeArgs })
  const express = await startBareExpress(processes, world, tenant)
  const load = await startLoad(processes)

  const request = addContact(tenant, audienceId)
  async function send(origin: string, forSeconds: number) {
    const options = { origins: [origin], requests: [request], seconds: forSeconds, connections }
    const { latencies, seconds: took } = await load.run(options, 201)
    return {
      count: latencies.length,
      rate: latencies.length / took,
      p99: quantile(latencies, 0.99),
      delivered: 0,
      catchUp: 0,
    }
  }
  async function sendAndDeliver(forSeconds: number) {
    await receiver.reset('nothing')
    const since = new Date()
    const sent = await send(service.url, forSeconds)
    const delivered = await receiver.count('ok')
    const ended = performance.now()
    await untilSettled(world, since)
    const catchUp = (performance.now() - ended) / 1000
    const inAll = await receiver.count('ok')
    const expected = sent.count * events.length
    if (inAll !== expected) throw new Error(`of ${expected} deliveries, ${inAll} came in`)
    return { ...sent, delivered: delivered / forSeconds, catchUp: catchUp / forSeconds }
  }

  progress('warming up')
  const warmUpSeconds = Math.min(3, seconds)
  await sendAndDeliver(warmUpSeconds)
  await send(express.url, warmUpSeconds)
  await profile.begin(world)
  const sides = await inTurn(
    context,
    {
      service: { prepare: () => settleDown(world), measure: () => sendAndDeliver(seconds) },
      'bare Express': { prepare: () => settleDown(world), measure: () => send(express.url, seconds) },
    },
    ({ rate, catchUp }) => `${Math.round(rate)} requests/s, ${(catchUp * seconds).toFixed(1)} s to catch up`,
  )

  const subject = valuesOf(sides.service, ({ rate }) => rate)
  const baseline = valuesOf(sides['bare Express'], ({ rate }) => rate)
  const catchUp = valuesOf(sides.service, (value) => value.catchUp)
  const count = Math.round(median(valuesOf(sides.service, (value) => value.count)) * rounds)
  return {
    measurements: [
      ...Object.entries(sides).flatMap(([side, measured]) => [
        { side, figure: 'requests answered', unit: '/s', values: valuesOf(measured, ({ rate }) => rate) },
        { side, figure: 'p99', unit: 'ms', values: valuesOf(measured, ({ p99 }) => p99) },
      ]),
      {
        side: 'service',
        figure: 'delivered meanwhile',
        unit: '/s',
        values: valuesOf(sides.service, ({ delivered }) => delivered),
      },
      { side: 'service', figure: 'catching up, of the time of the requests', unit: '', values: catchUp },
    ],
    targets: [
      { figure: 'service to bare Express', value: ratio(subject, baseline), goal: { atLeast: 0.5 } },
      { figure: 'deliveries keep up: time to catch up', value: median(catchUp), goal: catchUpGoal },
    ],
    costs: costsOf(sides),
    notes: [
      `${connections} connections add people without a pause; each causes two events, and both are delivered to one webhook.`,
      ...(await profile.end(world, service, { what: 'request', count })),
    ],
  }
}

/** Returns the request that adds a new person to an audience. */
export function addContact({ key }: Tenant, audienceId: string) {
  return {
    method: 'POST' as const,
    path: `/v1/audiences/${audienceId}/contacts`,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"email":"reader-{n}@example.com","firstName":"Ada"}',
  }
}
