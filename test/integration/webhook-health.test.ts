import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { newId } from '../../server/shared/ids.ts'
import { answer, type Receiver, silence, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

let count = 0

async function start(): Promise<{ service: TestService; receiver: Receiver; id: string }> {
  const service = await startTestService()
  onTestFinished(() => service.stop())
  const receiver = await startReceiver()
  onTestFinished(() => receiver.stop())
  return { service, receiver, id: await addWebhook(service, receiver.url) }
}

async function addWebhook({ client }: TestService, url: string): Promise<string> {
  const { id } = await client.succeed(contract.webhooks.create, { body: { url, events: ['subscriber.added'] } })
  return id
}

async function emit({ client }: TestService, many: number): Promise<void> {
  for (let index = 0; index < many; index++) {
    count += 1
    await client.succeed(contract.subscribers.create, { body: { email: `h${count}@example.com` } })
  }
}

async function healthOf({ client }: TestService, id: string) {
  const { health } = await client.succeed(contract.webhooks.get, { params: { id } })
  return health
}

const nothing = {
  limit: null,
  inFlight: 0,
  pending: 0,
  oldestPendingAt: null,
  lastHour: { attempts: 0, successRate: null, meanDurationMs: null, maxDurationMs: null },
}

test('the health of a webhook is in the answer of the webhook got by its id alone', async () => {
  const { service, id } = await start()
  const { client } = service
  expect(await healthOf(service, id)).toEqual(nothing)
  const { data } = await client.succeed(contract.webhooks.list, { query: {} })
  expect(data.map((one) => 'health' in one)).toEqual([false])
  const updated = await client.succeed(contract.webhooks.update, { params: { id }, body: { description: 'CRM' } })
  expect(updated).not.toHaveProperty('health')
})

test('the health of a webhook is not told to another account', async () => {
  const { service, id } = await start()
  const answered = await service.client.as(service.keys.other).send('GET', `/v1/webhooks/${id}`)
  expect(answered.status).toBe(404)
})

test('the health of a webhook tells of the attempts of the last hour', async () => {
  const { service, receiver, id } = await start()
  const other = await addWebhook(service, `${receiver.url}/other`)
  receiver.respondOnce(answer(500), answer(500))
  await emit(service, 4)
  const some = { attempts: 4, meanDurationMs: expect.any(Number), maxDurationMs: expect.any(Number) }
  await expect.poll(() => healthOf(service, id)).toMatchObject({ limit: expect.any(Number), lastHour: some })
  await expect.poll(() => healthOf(service, other)).toMatchObject({ lastHour: some })
  const rates = [await healthOf(service, id), await healthOf(service, other)].map((one) => one?.lastHour.successRate)
  expect((rates[0] ?? 0) + (rates[1] ?? 0)).toBe(1.5)
  const health = await healthOf(service, id)
  expect(health?.lastHour.maxDurationMs).toBeGreaterThanOrEqual(health?.lastHour.meanDurationMs ?? Infinity)

  // Others are counted with them, and what is older is not.
  const { db } = service.database
  await sql`
      INSERT INTO webhook_outcomes VALUES
        (${id}, date_bin('5 minutes', now() - interval '55 minutes', '2000-01-01 00:00Z'), 6, 0, 60000, 50000),
        (${id}, date_bin('5 minutes', now() - interval '71 minutes', '2000-01-01 00:00Z'), 100, 0, 100, 90000)
    `.execute(db)
  expect(await healthOf(service, id)).toMatchObject({ lastHour: { attempts: 10, maxDurationMs: 50_000 } })
})

test('the health of a webhook tells of what is in flight and of what waits beside it', async () => {
  const { service, receiver, id } = await start()
  receiver.respond(silence)
  await emit(service, 12)
  await receiver.received(4)
  const state = { limit: expect.any(Number), pending: 12, inFlight: expect.any(Number) }
  await expect.poll(() => healthOf(service, id)).toMatchObject(state)
  await expect.poll(async () => (await healthOf(service, id))?.inFlight).toBeGreaterThanOrEqual(4)
  const health = await healthOf(service, id)
  const { data } = await service.client.succeed(contract.deliveries.list, { params: { id }, query: {} })
  const times = data.map(({ createdAt }) => createdAt).toSorted()
  expect(health?.oldestPendingAt).toBe(times[0])
})

test('the health of a webhook adds up what all processes say, each for some seconds', async () => {
  const { service, id } = await start()
  const { db } = service.database
  const say = (ageSeconds: number, inFlight: number) =>
    sql`
      INSERT INTO flow_states (flow, process, max_in_flight, in_flight, updated_at)
      SELECT flow, gen_random_uuid(), 4, ${inFlight}::int, now() - make_interval(secs => ${ageSeconds})
      FROM webhooks WHERE id = ${id}
    `.execute(db)
  await say(0, 2)
  await say(10, 3)
  expect(await healthOf(service, id)).toMatchObject({ limit: 8, inFlight: 5 })
  await say(20, 7)
  await say(70, 9)
  expect(await healthOf(service, id)).toMatchObject({ limit: 12, inFlight: 5 })
  await sql`TRUNCATE flow_states`.execute(db)
  expect(await healthOf(service, id)).toEqual(nothing)
})

test('the health of a webhook counts what is pending among the latest 1,000 that did not succeed', async () => {
  const { service, id } = await start()
  const { db } = service.database
  const add = (status: string, many: number, at: Date) =>
    sql`
      INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, status, created_at, completed_at)
      SELECT ${newId('delivery', at)} || lpad(n::text, 6, '0'), 'acc', ${id}, 'evt', 'subscriber.added', ${status},
        ${at}, CASE WHEN ${status} <> 'pending' THEN ${at}::timestamptz END FROM generate_series(1, ${many}) n
    `.execute(db)
  const times = [0, 1, 2, 3, 4].map((minute) => new Date(Date.UTC(2026, 0, 1, 0, minute)))
  const [first, second, third, fourth, fifth] = times as [Date, Date, Date, Date, Date]
  await add('pending', 2, first)
  await add('failed', 500, second)
  await add('succeeded', 100, third)
  await add('pending', 498, fourth)
  expect(await healthOf(service, id)).toMatchObject({ pending: 500, oldestPendingAt: first.toISOString() })
  await add('canceled', 2, fifth)
  expect(await healthOf(service, id)).toMatchObject({ pending: 498, oldestPendingAt: fourth.toISOString() })
})

test('the health of a webhook goes on being told after its webhook was deleted in between', async () => {
  const { service, receiver, id } = await start()
  const other = await addWebhook(service, `${receiver.url}/other`)
  const held: (() => void)[] = []
  receiver.respond(({ response }) => held.push(() => response.end()))
  await emit(service, 1)
  await receiver.received(2)
  await service.client.send('DELETE', `/v1/webhooks/${id}`)
  for (const release of held) release()
  await expect.poll(() => healthOf(service, other)).toMatchObject({ lastHour: { attempts: 1, successRate: 1 } })
})
