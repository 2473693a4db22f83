import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { DeliveryWithAttempts } from '../../contract/deliveries.ts'
import { contract } from '../../contract/index.ts'
import { stopMonotonicClock } from '../support/clock.ts'
import { answer, type Receiver, silence, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService, type TestServiceOptions } from '../support/service.ts'

/*
 * The fields of a delivery over HTTP that show why it waits, and when it was due and claimed.
 */

let count = 0

async function start(options: TestServiceOptions = {}): Promise<TestService> {
  const service = await startTestService(options)
  onTestFinished(() => service.stop())
  return service
}

async function endpoint(): Promise<Receiver> {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  return receiver
}

async function addWebhook({ client }: TestService, url: string): Promise<string> {
  const { id } = await client.succeed(contract.webhooks.create, { body: { url, events: ['subscriber.added'] } })
  return id
}

/** Has so many events happen. */
async function emit({ client }: TestService, many = 1): Promise<void> {
  for (let index = 0; index < many; index++) {
    count += 1
    await client.succeed(contract.subscribers.create, { body: { email: `w${count}@example.com` } })
  }
}

/** The deliveries of a webhook, newest first, each got by its id. */
async function got({ client }: TestService, id: string): Promise<DeliveryWithAttempts[]> {
  const { data } = await client.succeed(contract.deliveries.list, { params: { id }, query: {} })
  return Promise.all(data.map((one) => client.succeed(contract.deliveries.get, { params: { id, deliveryId: one.id } })))
}

/** The only delivery of a webhook, once it is as wanted. */
async function only(service: TestService, id: string, wanted: Partial<DeliveryWithAttempts>) {
  await expect.poll(() => got(service, id)).toEqual([expect.objectContaining(wanted)])
  const [delivery] = await got(service, id)
  return delivery as DeliveryWithAttempts
}

/** Each in its order; equal ones count as ordered. */
function expectOrder(...times: (string | null | undefined)[]): void {
  expect(times.every((time) => typeof time === 'string')).toBe(true)
  expect(times).toEqual(times.toSorted())
}

async function statusesOf(service: TestService, id: string): Promise<unknown[]> {
  return (await got(service, id)).map(({ status }) => status)
}

/** Returns the reasons why pending deliveries of a webhook wait, each once. */
async function reasonsOf(service: TestService, id: string): Promise<unknown[]> {
  const deliveries = await got(service, id)
  return [...new Set(deliveries.map(({ waitingFor }) => waitingFor))].toSorted()
}

test('a pending delivery waits for its time, after a failed attempt', async () => {
  const service = await start()
  const receiver = await endpoint()
  receiver.respond(answer(500))
  const id = await addWebhook(service, receiver.url)
  await emit(service)
  const { queuedAt, claimedAt, nextAttemptAt, attempts } = await only(service, id, {
    attemptCount: 1,
    waitingFor: 'retry_schedule',
  })
  // Those of the attempt that was made.
  expectOrder(queuedAt, claimedAt, attempts[0]?.startedAt, nextAttemptAt)
  expect(queuedAt).not.toBe(nextAttemptAt)
})

test('a pending delivery waits for the limit of its endpoint, beside requests that hang', async () => {
  const service = await start()
  const receiver = await endpoint()
  receiver.respond(silence)
  const id = await addWebhook(service, receiver.url)
  await emit(service, 12)
  await receiver.received(4)
  await expect.poll(() => reasonsOf(service, id)).toEqual(['endpoint_limit', null])
  const waiting = (await got(service, id)).filter(({ waitingFor }) => waitingFor === 'endpoint_limit')
  for (const { claimedAt, queuedAt, nextAttemptAt } of waiting) {
    expect(claimedAt).toBeNull()
    // One that was in hand before was due before it was written down.
    expectOrder(queuedAt, nextAttemptAt)
  }
  const claimed = (await got(service, id)).filter(({ waitingFor }) => waitingFor === null)
  expect(claimed.length).toBeGreaterThanOrEqual(4)
  for (const { claimedAt, queuedAt } of claimed) expectOrder(queuedAt, claimedAt)
})

test('a pending delivery waits for the share of its account, which hanging requests of its other webhooks hold', async () => {
  const service = await start({ delivery: { places: 5, endpointMax: 16 } })
  const receiver = await endpoint()
  receiver.respond(silence)
  for (let path = 0; path < 4; path++) await addWebhook(service, `${receiver.url}/${path}`)
  await emit(service)
  await receiver.received(4)
  const fine = await endpoint()
  const id = await addWebhook(service, fine.url)
  await emit(service)
  await only(service, id, { status: 'pending', claimedAt: null, waitingFor: 'account_share' })
  expect(fine.requests).toHaveLength(0)
})

test('a pending delivery waits for its claim while no worker runs', async () => {
  const service = await start()
  const receiver = await endpoint()
  receiver.respond(answer(500))
  const id = await addWebhook(service, receiver.url)
  await emit(service)
  const { id: deliveryId } = await only(service, id, { attemptCount: 1 })
  const api = await startTestService({ beside: service, roles: { worker: false } })
  onTestFinished(() => api.stop())
  await service.app.stop()
  await api.client.succeed(contract.deliveries.resend, { params: { id, deliveryId }, body: {} })
  const { queuedAt, nextAttemptAt } = await only(api, id, { claimedAt: null, waitingFor: 'claim' })
  expect(queuedAt).toBe(nextAttemptAt)
})

test('a pending delivery waits for its claim where what processes said is lost or old', async () => {
  const service = await start({ shutdownTimeoutSeconds: 0 })
  const receiver = await endpoint()
  receiver.respond(silence)
  const id = await addWebhook(service, receiver.url)
  await emit(service, 12)
  await receiver.received(4)
  await expect.poll(() => reasonsOf(service, id)).toEqual(['endpoint_limit', null])
  const api = await startTestService({ beside: service, roles: { worker: false } })
  onTestFinished(() => api.stop())
  const { db } = service.database
  // As after a crash of PostgreSQL.
  await sql`TRUNCATE flow_states`.execute(db)
  await expect.poll(() => reasonsOf(service, id)).toEqual(['endpoint_limit', null])
  await service.app.stop()
  expect(await reasonsOf(api, id)).toEqual(['claim'])
  // As a process that was killed.
  const said = (secondsAgo: number) =>
    sql`
      INSERT INTO flow_states (flow, process, max_in_flight, in_flight, waits_for, updated_at)
      SELECT flow, gen_random_uuid(), 4, 4, 'endpoint_limit', now() - make_interval(secs => ${secondsAgo})
      FROM webhooks WHERE id = ${id}
    `.execute(db)
  await said(16)
  expect(await reasonsOf(api, id)).toEqual(['claim'])
  await said(0)
  expect(await reasonsOf(api, id)).toEqual(['endpoint_limit'])
})

describe('a delivery was due, then claimed, then attempted', () => {
  test('a delivery in hand was due, then claimed, then attempted', async () => {
    const service = await start()
    const receiver = await endpoint()
    const id = await addWebhook(service, receiver.url)
    await emit(service)
    const one = await only(service, id, { status: 'succeeded', waitingFor: null })
    expectOrder(one.createdAt, one.queuedAt, one.claimedAt, one.attempts[0]?.startedAt)
  })

  test('a delivery of a slow endpoint, longer in hand than is kept, was due, then claimed, then attempted', async () => {
    const service = await start()
    const receiver = await endpoint()
    const held: (() => void)[] = []
    receiver.respond(({ response }) => held.push(() => response.end()))
    const id = await addWebhook(service, receiver.url)
    await emit(service)
    const pending = await only(service, id, { status: 'pending', waitingFor: null })
    expectOrder(pending.createdAt, pending.queuedAt, pending.claimedAt)
    held[0]?.()
    const one = await only(service, id, { status: 'succeeded', waitingFor: null })
    expectOrder(one.createdAt, one.queuedAt, one.claimedAt, one.attempts[0]?.startedAt)
    expect(one.queuedAt).toBe(pending.queuedAt)
  })

  test('a delivery through the queue was due, then claimed, then attempted', async () => {
    const service = await start()
    const receiver = await endpoint()
    const held: (() => void)[] = []
    receiver.respond(({ response }) => held.push(() => response.end()))
    const id = await addWebhook(service, receiver.url)
    // Deliveries in hand stay there, and the requests in flight count.
    stopMonotonicClock()
    await emit(service, 12)
    await receiver.received(4)
    await expect.poll(async () => (await got(service, id)).length).toBe(12)
    const isWaiting = ({ claimedAt }: DeliveryWithAttempts) => claimedAt === null
    const waiting = new Set((await got(service, id)).filter(isWaiting).map((one) => one.id))
    expect(waiting.size).toBeGreaterThanOrEqual(4)
    const before = new Date().toISOString()
    receiver.respond(answer(200))
    for (const release of held) release()
    await expect.poll(() => statusesOf(service, id)).toEqual(Array(12).fill('succeeded'))
    for (const { id: deliveryId, queuedAt, claimedAt, attempts } of await got(service, id)) {
      expectOrder(queuedAt, claimedAt, attempts[0]?.startedAt)
      if (waiting.has(deliveryId)) expectOrder(queuedAt, before, claimedAt)
    }
  })

  test('a delivery was due, then claimed, then attempted, again after a retry, a resend and a new run', async () => {
    const service = await start()
    const receiver = await endpoint()
    receiver.respondOnce(answer(500))
    receiver.respond(answer(500))
    const id = await addWebhook(service, receiver.url)
    await emit(service)
    const first = await only(service, id, { attemptCount: 1 })
    const resend = () =>
      service.client.succeed(contract.deliveries.resend, { params: { id, deliveryId: first.id }, body: {} })
    const due = await resend()
    const second = await only(service, id, { attemptCount: 2, waitingFor: 'retry_schedule' })
    expect(second.queuedAt).toBe(due.nextAttemptAt)
    expectOrder(first.queuedAt, first.claimedAt, second.queuedAt, second.claimedAt, second.attempts[1]?.startedAt)

    // Its time comes.
    receiver.respond(answer(200))
    const { db } = service.database
    await sql`UPDATE deliveries SET next_attempt_at = now() - interval '1 ms'`.execute(db)
    await sql`
      UPDATE pgboss.job SET start_after = now() - interval '1 ms', created_on = now() - interval '1 ms'
      WHERE name = 'deliveries'
    `.execute(db)
    const third = await only(service, id, { status: 'succeeded', attemptCount: 3 })
    expectOrder(second.claimedAt, third.queuedAt, third.claimedAt, third.attempts[2]?.startedAt)

    const anew = await resend()
    const fourth = await only(service, id, { status: 'succeeded', attemptCount: 4 })
    expect(fourth.queuedAt).toBe(anew.nextAttemptAt)
    expectOrder(third.claimedAt, fourth.queuedAt, fourth.claimedAt, fourth.attempts[3]?.startedAt)
  })

  test('a test delivery was due, then claimed, then attempted', async () => {
    const service = await start()
    const receiver = await endpoint()
    const id = await addWebhook(service, receiver.url)
    await service.client.succeed(contract.webhooks.test, { params: { id }, body: {} })
    const one = await only(service, id, { status: 'succeeded', waitingFor: null })
    expectOrder(one.createdAt, one.queuedAt, one.claimedAt, one.attempts[0]?.startedAt)
  })
})

describe('neither time is known', () => {
  test('a delivery of the version before has neither time', async () => {
    const service = await start()
    const receiver = await endpoint()
    const id = await addWebhook(service, receiver.url)
    await emit(service)
    await only(service, id, { status: 'succeeded' })
    await sql`UPDATE deliveries SET queued_at = NULL, claimed_at = NULL`.execute(service.database.db)
    await only(service, id, { queuedAt: null, claimedAt: null, waitingFor: null })
  })

  test('a delivery that was canceled in flight has neither time', async () => {
    const service = await start()
    const receiver = await endpoint()
    const held: (() => void)[] = []
    receiver.respond(({ response }) => held.push(() => response.end()))
    const id = await addWebhook(service, receiver.url)
    await emit(service)
    await only(service, id, { status: 'pending', waitingFor: null })
    await service.client.succeed(contract.webhooks.update, { params: { id }, body: { status: 'disabled' } })
    await only(service, id, { status: 'canceled', waitingFor: null })
    held[0]?.()
    await only(service, id, { status: 'succeeded', queuedAt: null, claimedAt: null, waitingFor: null })
  })
})
