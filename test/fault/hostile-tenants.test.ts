import type { ServerResponse } from 'node:http'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { newId } from '../../server/shared/ids.ts'
import { initialLimit } from '../../server/webhook-delivery/scheduling/flow-limit.ts'
import { holdMonotonicClock, stopMonotonicClock } from '../support/clock.ts'
import { type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, type Behaviour, silence } from '../support/receiver.ts'
import { type Endpoint, startEndpoint } from './support/endpoint.ts'
import { rounds, within } from './support/rounds.ts'

/*
 * Tenants whose endpoints never answer, and who do what they can to have more requests in flight, beside others. None
 * of the hostile requests ever ends, so that whatever the others get they get beside all of them.
 */

/** Of the 48 for endpoints that are not known to answer, an account holds fewer than four times those that are free. */
const [places, mostOfOne] = [64, 39]
const endpointMax = 16
/** Requests of an account at one host, to endpoints that are not known to answer: three quarters of all. */
const unansweredMax = 1.5 * endpointMax

/** Events of a calm tenant, each of which is committed when the one before has arrived. */
const calmEvents = rounds({ short: 15, long: 300 })

type Tenant = AsyncDisposable & {
  accountId: string
  endpoint: Endpoint
  /** Commits events, each for all of its webhooks. */
  emit(count?: number): Promise<unknown>
  /** Adds webhooks, each with a URL of its own: at one host, or at as many. */
  addWebhooks(count: number, hosts?: 'one' | 'many'): Promise<void>
  /** Adds webhooks with one and the same URL. */
  addCopies(count: number): Promise<void>
}

/** A process that has every host be this machine, and gives up no request. */
function start({ places: own = places } = {}): Promise<Engine> {
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  return startEngine({ places: own, endpointMax, exchangeTimeoutMs: 3_600_000, resolve })
}

async function addTenant(engine: Engine, behaviour: Behaviour): Promise<Tenant> {
  const accountId = await engine.addAccount()
  const endpoint = await startEndpoint(behaviour)
  const addWebhook = (host: string, path: string | number) =>
    engine.addWebhook(`http://${host}.test:${endpoint.port}/${path}`, ['contact.deleted'], accountId)
  return {
    accountId,
    endpoint,
    emit: (count = 1) => engine.emit(count, 'contact.deleted', accountId),
    async addWebhooks(count, hosts = 'one') {
      for (let number = 0; number < count; number++) await addWebhook(hosts === 'one' ? 'one' : `h${number}`, number)
    },
    async addCopies(count) {
      for (let number = 0; number < count; number++) await addWebhook('one', 'copy')
    },
    [Symbol.asyncDispose]: () => endpoint.stop(),
  }
}

/**
 * Has all webhooks of a tenant lead to URLs that they never led to before. `host` is SQL. Locks them in order of their
 * ids, as the service does: in any other order each could wait for the other.
 */
async function changeUrls({ db }: Engine, { accountId, endpoint }: Tenant, step: number, host = `'one'`) {
  const rest = `.test:${endpoint.port}/${step}/`
  await sql`
    WITH locked AS MATERIALIZED (
      SELECT id FROM webhooks WHERE account_id = ${accountId} ORDER BY id FOR NO KEY UPDATE
    )
    UPDATE webhooks SET url = 'http://' || ${sql.raw(host)} || ${rest} || id WHERE id IN (SELECT id FROM locked)
  `.execute(db)
}

/** Has each of so many events arrive before the next is committed. Before each of them something else is done. */
async function arriveOneByOne(
  tenant: Pick<Tenant, 'endpoint' | 'emit'>,
  count: number,
  before: (number: number) => Promise<unknown>,
) {
  for (let number = 1; number <= count; number++) {
    await before(number)
    const arrived = tenant.endpoint.requests.length
    await tenant.emit()
    await tenant.endpoint.received(arrived + 1)
  }
}

test.each([
  { hosts: 'one host', host: `'one'`, most: unansweredMax },
  { hosts: 'hosts of their own', host: 'lower(right(id, 20))', most: mostOfOne },
])(
  'a tenant whose endpoints never answer starves nobody by changing the URLs of 30 webhooks all the time, at $hosts',
  within(2),
  async ({ host, most }) => {
    await using engine = await start()
    await using hostile = await addTenant(engine, silence)
    await using calm = await addTenant(engine, answer(200))
    await calm.addWebhooks(1)
    await hostile.addWebhooks(30)
    await arriveOneByOne(calm, calmEvents, async (step) => {
      await changeUrls(engine, hostile, step, host)
      await hostile.emit(2)
    })
    await hostile.endpoint.received(most)
    await arriveOneByOne(calm, 5, () => hostile.emit())
    expect(hostile.endpoint.requests).toHaveLength(most)
    expect(calm.endpoint.requests).toHaveLength(calmEvents + 5)
  },
)

test(
  'a tenant whose endpoints never answer delays none of its own that answers behind the same host',
  within(2),
  async () => {
    await using engine = await start()
    await using hostile = await addTenant(engine, silence)
    await using endpoint = await startEndpoint(answer(200))
    const url = `http://one.test:${endpoint.port}/hook`
    const webhookId = await engine.addWebhook(url, ['contact.deleted'], hostile.accountId)
    await hostile.emit()
    await engine.deliveryOf(webhookId, hasSucceeded)
    await hostile.addWebhooks(30)
    await arriveOneByOne({ endpoint, emit: hostile.emit }, calmEvents, async () => undefined)
    await hostile.endpoint.received(unansweredMax)
    await arriveOneByOne({ endpoint, emit: hostile.emit }, calmEvents, async () => undefined)
    expect(hostile.endpoint.requests).toHaveLength(unansweredMax)
  },
)

test(
  'a tenant whose endpoints never answer has no more in flight at a URL for 200 webhooks than for one',
  within(2),
  async () => {
    // No request is silent for too long.
    stopMonotonicClock()
    await using engine = await start()
    await using hostile = await addTenant(engine, silence)
    await using calm = await addTenant(engine, answer(200))
    await calm.addWebhooks(1)
    await hostile.addCopies(200)
    await hostile.emit(2)
    await hostile.endpoint.received(initialLimit)
    await arriveOneByOne(calm, calmEvents, () => hostile.emit())
    expect(hostile.endpoint.requests).toHaveLength(initialLimit)
  },
)

test('a tenant whose endpoints never answer with a backlog for 3,000 URLs does not keep a process from finding what others wait for', async () => {
  await using engine = await start()
  await using hostile = await addTenant(engine, silence)
  await using calm = await addTenant(engine, answer(200))
  await hostile.addWebhooks(1)
  const ids = Array.from({ length: 2_999 }, () => newId('webhook', new Date()))
  await sql`
      INSERT INTO webhooks (id, account_id, url, events, secret)
      SELECT i.id, w.account_id, replace(w.url, 'one.test', lower(i.id) || '.test'), w.events, w.secret
      FROM webhooks w, unnest(${ids}::text[]) AS i (id)
    `.execute(engine.db)
  // Its flow is the last.
  await calm.addWebhooks(1)
  await engine.workers.stop(1_000)
  await hostile.emit()
  await calm.emit()
  await engine.fanOut()
  await engine.startWorkers()
  await calm.endpoint.received(1)
  await hostile.endpoint.received(mostOfOne)
  await arriveOneByOne(calm, 5, async () => undefined)
  expect(hostile.endpoint.requests).toHaveLength(mostOfOne)
})

test.each([
  { failed: 'answered 500', failing: answer(500), hung: 0 },
  { failed: 'did not answer', failing: silence, hung: initialLimit },
])(
  'a tenant whose endpoints never answer does not keep another from recovering whose endpoint $failed for a while',
  within(2),
  async ({ failing, hung }) => {
    await using engine = await start()
    await using hostile = await addTenant(engine, silence)
    await using calm = await addTenant(engine, failing)
    await calm.addWebhooks(1)
    await hostile.addWebhooks(24, 'many')
    await hostile.emit(4)
    await hostile.endpoint.received(mostOfOne)
    const before = 20
    await calm.emit(before)
    await calm.endpoint.received(hung === 0 ? before : hung)
    calm.endpoint.respond(answer(200))
    await arriveOneByOne(calm, calmEvents, () => hostile.emit())
    // Failed deliveries are attempted again when they are due, and those that waited have arrived.
    await engine.advance(61)
    await calm.endpoint.received(calmEvents + before + (hung === 0 ? before : 0))
    expect(hostile.endpoint.requests).toHaveLength(mostOfOne)
  },
)

/** How long a slow endpoint takes for each request, on a clock that the test moves. Milliseconds. */
const slowMs = 1_100

/**
 * Has so many requests come and be answered after `slowMs`, the oldest first: whenever as many are in flight as may be,
 * which is one more after each answer.
 */
async function answerSlowly({ endpoint }: Tenant, count: number, clock: { advance(ms: number): void }): Promise<void> {
  const inFlight: ServerResponse[] = []
  const before = endpoint.requests.length
  endpoint.respond(({ response }) => void inFlight.push(response))
  for (let answered = 0; answered < count; answered++) {
    const limit = Math.min(endpointMax, initialLimit + answered)
    await endpoint.received(before + Math.min(count, answered + limit))
    clock.advance(slowMs / inFlight.length)
    inFlight.shift()?.end()
  }
}

/** Answers after 20 ms, and 503 to one in 8. */
function refusesOneIn8(): Behaviour {
  let count = 0
  return (exchange) => {
    count += 1
    setTimeout(() => answer(count % 8 === 0 ? 503 : 200)(exchange), 20)
  }
}

test('an endpoint that always takes 1.1 s has one request more in flight after each answer of a burst, up to the most', async () => {
  const clock = holdMonotonicClock()
  await using engine = await start()
  await using slow = await addTenant(engine, silence)
  await slow.addWebhooks(1)
  for (let few = 0; few < 10; few++) await Promise.all([slow.emit(), answerSlowly(slow, 1, clock)])
  await Promise.all([slow.emit(150), answerSlowly(slow, 150, clock)])
  expect(slow.endpoint.mostAtOnce()).toBe(endpointMax)
})

test('an endpoint that refuses 1 in 8 has several requests in flight again after an outage', async () => {
  await using engine = await start()
  await using odd = await addTenant(engine, answer(503))
  await odd.addWebhooks(1)
  await odd.emit(20)
  await odd.endpoint.received(20)
  odd.endpoint.respond(refusesOneIn8())
  await odd.emit(150)
  await odd.endpoint.received(170)
  expect(odd.endpoint.mostAtOnce()).toBeGreaterThan(initialLimit)
})

test('all of these at once: everybody else gets theirs', within(2), async () => {
  const clock = holdMonotonicClock()
  await using engine = await start({ places: 256 })
  await using changing = await addTenant(engine, silence)
  await using hanging = await addTenant(engine, silence)
  await using copies = await addTenant(engine, silence)
  await using calm = await addTenant(engine, answer(200))
  await using recovered = await addTenant(engine, answer(500))
  await using slow = await addTenant(engine, silence)
  await using odd = await addTenant(engine, answer(503))
  await changing.addWebhooks(30)
  await hanging.addWebhooks(24, 'many')
  await copies.addCopies(200)
  for (const tenant of [calm, recovered, slow, odd]) await tenant.addWebhooks(1)
  await recovered.emit(20)
  await recovered.endpoint.received(20)
  recovered.endpoint.respond(answer(200))
  await odd.emit(20)
  await odd.endpoint.received(20)
  odd.endpoint.respond(refusesOneIn8())

  async function beHostile(step: number): Promise<void> {
    await changeUrls(engine, changing, step)
    await Promise.all([changing.emit(), hanging.emit(2), copies.emit()])
  }
  await beHostile(0)
  await Promise.all([
    arriveOneByOne(calm, calmEvents, beHostile),
    arriveOneByOne(recovered, calmEvents, async () => undefined),
    slow.emit(150),
    answerSlowly(slow, 150, clock),
    odd.emit(150),
    odd.endpoint.received(170),
  ])
  expect(slow.endpoint.mostAtOnce()).toBe(endpointMax)
  expect(odd.endpoint.mostAtOnce()).toBeGreaterThan(initialLimit)
  expect(changing.endpoint.requests.length).toBeLessThanOrEqual(unansweredMax)
})
