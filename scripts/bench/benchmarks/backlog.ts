import { writeBacklog } from '../backlog-rows.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Receiver, startCluster, startReceiver, startService, type World } from '../lab.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addTenants, appendEvents, settleDown, type Tenant, timeDelivery } from '../seed.ts'
import { ratio } from '../statistics.ts'

const retries = 1_000_000
const accounts = 1_000
const webhooksEach = 10
/** Accounts whose deliveries are measured, with one webhook each. */
const drainedTenants = 10
/** Approximate deliveries per second, which determine the events of a round. */
const expectedRate = 5_000

export const backlog: Benchmark = {
  name: 'backlog',
  measures: `as drain, with ${retries.toLocaleString('en')} retries scheduled for later and ${(accounts * webhooksEach).toLocaleString('en')} webhooks in ${accounts.toLocaleString('en')} accounts`,
  baseline: 'the same, empty',
  rounds: 3,
  seconds: 8,
  run,
}

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size, progress } = context
  const cluster = await startCluster(processes)
  const receiver = await startReceiver(processes)
  await using empty = await cluster.create('empty')
  await using full = await cluster.create('full')
  const count = Math.round(expectedRate * seconds)

  const emptyTenants = await addDrained(empty, receiver)
  const fullTenants = await addDrained(full, receiver)
  const others = await addTenants(
    full,
    Array.from({ length: Math.ceil(accounts * size) }, (_, account) => ({
      urls: Array.from({ length: webhooksEach }, (_, index) => `${receiver.url}/ok/other-${account}-${index}`),
    })),
  )
  const waiting = Math.round(retries * size)
  const everyMs = 10
  progress(`preparing ${waiting.toLocaleString('en')} retries`)
  await writeBacklog(
    full,
    {
      count: waiting,
      webhooks: others.flatMap(({ accountId, webhookIds }) =>
        webhookIds.map((webhookId) => ({ accountId, webhookId })),
      ),
      firstAt: new Date(Date.now() - waiting * everyMs),
      everyMs,
      // Due during the whole of tomorrow, as after a failure of the second to last attempt.
      retryAt: (at) => new Date(at.getTime() + 86_400_000 + waiting * everyMs),
    },
    progress,
  )

  /** Measures with a separate service, so that the databases do not affect each other. */
  async function measure(world: World, tenants: readonly Tenant[]): Promise<number> {
    await using _service = await startService(processes, world, { name: `service, ${world.name}` })
    let took = 0
    for (const events of [Math.ceil(count / 4), count]) {
      await receiver.reset('nothing')
      const since = new Date()
      const commit = await appendEvents(world, tenants, events)
      took = await timeDelivery(world, { since, commit, arrived: () => receiver.until('ok', events) })
      const received = await receiver.count('ok')
      if (received !== events) throw new Error(`of ${events} deliveries, ${received} came in`)
    }
    return count / took
  }

  const sides = await inTurn(
    context,
    {
      'with backlog': { prepare: () => settleDown(full), measure: () => measure(full, fullTenants) },
      empty: { prepare: () => settleDown(empty), measure: () => measure(empty, emptyTenants) },
    },
    (rate) => `${Math.round(rate)} deliveries/s`,
  )
  const subject = valuesOf(sides['with backlog'], (rate) => rate)
  const baseline = valuesOf(sides.empty, (rate) => rate)
  return {
    measurements: [
      { side: 'with backlog', figure: 'delivered and settled', unit: '/s', values: subject },
      { side: 'empty', figure: 'delivered and settled', unit: '/s', values: baseline },
    ],
    targets: [{ figure: 'with backlog to empty', value: ratio(subject, baseline), goal: { atLeast: 0.8 } }],
    costs: costsOf(sides),
    notes: [
      `${waiting.toLocaleString('en')} retries, each made at another moment and due over the next day, of ${(others.length * webhooksEach).toLocaleString('en')} webhooks.`,
      `A round is ${count} events after ${Math.ceil(count / 4)} to warm up, with a service started for it.`,
    ],
  }
}

function addDrained(world: World, receiver: Receiver): Promise<Tenant[]> {
  return addTenants(
    world,
    Array.from({ length: drainedTenants }, (_, index) => ({ urls: [`${receiver.url}/ok/${index}`] })),
  )
}
