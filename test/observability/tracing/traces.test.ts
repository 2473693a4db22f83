import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { contract } from '../../../contract/index.ts'
import type { TracingConfig } from '../../../server/observability/tracing/settings.ts'
import { createTestTime } from '../../support/clock.ts'
import { type CollectedSpan, type Collector, startCollector } from '../../support/collector.ts'
import { deadUrl } from '../../support/fixtures.ts'
import { sendRaw } from '../../support/raw-http.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { startTestService, type TestService, type TestServiceOptions } from '../../support/service.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const clientSpan = '00f067aa0ba902b7'
const traceparent = `00-${traceId}-${clientSpan}-01`

const aboutEmail = z.object({ emailId: z.string() })

let collector: Collector
let receiver: Receiver

beforeEach(async () => {
  collector = await startCollector()
  receiver = await startReceiver()
})
afterEach(async () => {
  await collector[Symbol.asyncDispose]()
  await receiver.stop()
})

function startTraced(tracing: Partial<TracingConfig> = {}, options: TestServiceOptions = {}) {
  const defaults: TracingConfig = {
    endpoint: collector.endpoint,
    headers: {},
    serviceName: 'postern',
    sampler: 'parentbased_always_on',
    samplerRatio: 1,
  }
  return startTestService({ ...options, tracing: { ...defaults, ...tracing } })
}

function named(name: string): CollectedSpan[] {
  return collector.spans().filter((span) => span.name === name)
}

function only(name: string): CollectedSpan {
  const [span, ...more] = named(name)
  if (span === undefined || more.length > 0) throw new Error(`${more.length + (span ? 1 : 0)} spans are named ${name}`)
  return span
}

test('a request of a client that traces goes on over the outbox and the fan-out to the attempt and the receiver', async () => {
  const service = await startTraced({ headers: { 'x-collector-key': 'let me in' } })
  const { client } = service
  const webhook = await client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
  const body = { email: 'ada@example.com' }
  await client.succeed(contract.subscribers.create, { body }, { headers: { traceparent } })
  const [delivered] = await receiver.received(1)
  const list = async () =>
    (await client.succeed(contract.deliveries.list, { params: { id: webhook.id }, query: {} })).data
  await expect.poll(list).toHaveLength(1)
  const data = await list()
  await service.stop()

  const request = only('POST /v1/subscribers')
  expect(request).toMatchObject({
    service: 'postern',
    kind: 2,
    traceId,
    parentSpanId: clientSpan,
    status: { code: 0 },
    attributes: {
      'http.request.method': 'POST',
      'http.route': '/v1/subscribers',
      'http.response.status_code': 201,
      'postern.request.id': expect.stringMatching(/^req_/),
    },
  })
  const eventId = data[0]?.eventId
  expect(request.events).toEqual([
    {
      name: 'event appended',
      attributes: { 'postern.event.id': eventId, 'postern.event.type': 'subscriber.added' },
    },
  ])
  const parentSpanId = request.spanId
  expect(only('fan-out')).toMatchObject({ traceId, parentSpanId, attributes: { 'postern.event.id': eventId } })
  const attempt = only('delivery attempt')
  expect(attempt).toMatchObject({
    kind: 3,
    traceId,
    parentSpanId,
    status: { code: 0 },
    attributes: {
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'server.port': receiver.port,
      'postern.event.id': eventId,
      'postern.delivery.id': data[0]?.id,
      'postern.webhook.id': webhook.id,
      'postern.attempt.number': 1,
    },
  })
  expect(delivered?.headers.traceparent).toBe(`00-${traceId}-${attempt.spanId}-01`)
  expect(collector.receiver.requests[0]?.headers['x-collector-key']).toBe('let me in')
})

test('a request of a client that traces shows every attempt, with why it failed', async () => {
  const time = createTestTime(new Date('2026-03-01T09:30:00.000Z'))
  const service = await startTraced({}, { time })
  await service.client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
  receiver.respondOnce(answer(503, { body: 'the inside of the receiver' }))
  const body = { email: 'ada@example.com' }
  await service.client.succeed(contract.subscribers.create, { body }, { headers: { traceparent } })
  await receiver.received(1)
  await expect.poll(() => pendingRetries(service)).toBe(1)
  await time.advance(61_000)
  await receiver.received(2)
  await service.stop()

  const attempts = named('delivery attempt')
  expect(attempts.map(({ attributes }) => attributes['postern.attempt.number'])).toEqual([1, 2])
  expect(attempts.map((span) => span.traceId)).toEqual([traceId, traceId])
  expect(attempts[0]).toMatchObject({
    status: { code: 2, message: expect.stringContaining('The endpoint answered 503') },
    attributes: { 'http.response.status_code': 503, 'error.type': '503' },
  })
  expect(attempts[1]).toMatchObject({ status: { code: 0 }, attributes: { 'http.response.status_code': 200 } })
  expect(JSON.stringify(collector.spans())).not.toContain('inside of the receiver')
})

async function pendingRetries({ database }: TestService): Promise<number> {
  const rows = await database.db.selectFrom('deliveries').select('id').where('attempt_count', '=', 1).execute()
  return rows.length
}

/** The `traceparent` of each event of the service. */
async function keptIn({ database }: TestService): Promise<(string | null)[]> {
  const rows = await database.db.selectFrom('events').select('traceparent').orderBy('id').execute()
  return rows.map((row) => row.traceparent)
}

/** Adds a subscriber with a webhook that hears of it. */
async function cause(service: TestService, headers: Record<string, string> = {}, idempotencyKey?: string) {
  await service.client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: ['subscriber.added'] } })
  await service.client.succeed(
    contract.subscribers.create,
    { body: { email: 'ada@example.com' } },
    { headers, ...(idempotencyKey !== undefined && { idempotencyKey }) },
  )
}

test('a request keeps its trace with an Idempotency-Key too', async () => {
  const service = await startTraced({}, { roles: { worker: false } })
  await cause(service, { traceparent }, 'once')
  const kept = await keptIn(service)
  await service.stop()
  expect(kept).toEqual([`00-${traceId}-${only('POST /v1/subscribers').spanId}-01`])
})

test('a request has its own emails only, of several that are sent at once', async () => {
  const { client, stop } = await startTraced()
  const address = 'ada@example.com'
  await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  await client.succeed(contract.suppressions.create, { body: { address } })
  const email = { from: 'hello@shop.test', to: [address], subject: 'Hello', text: 'Hello' }
  const traceIds = ['a', 'b', 'c', 'd'].map((digit) => digit.repeat(32))
  const sent = await Promise.all(
    traceIds.map((id) =>
      client.succeed(contract.emails.send, { body: email }, { headers: { traceparent: `00-${id}-${clientSpan}-01` } }),
    ),
  )
  const { data } = await client.succeed(contract.events.list, { query: { type: 'email.failed' } })
  await stop()

  const emailOf = new Map(data.map((event) => [event.id, aboutEmail.parse(event.data).emailId]))
  const told = named('POST /v1/emails').map(({ traceId: id, events }) => [
    id,
    events.map(({ attributes }) => emailOf.get(String(attributes['postern.event.id']))),
  ])
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(traceIds.map((id, index) => [id, [sent[index]?.id]])))
})

test('a request that the client does not trace leaves nothing, here and at the receiver', async () => {
  const service = await startTraced()
  await cause(service, { traceparent: `00-${traceId}-${clientSpan}-00` })
  const [delivered] = await receiver.received(1)
  expect(await keptIn(service)).toEqual([null])
  await service.stop()
  expect(delivered?.headers).not.toHaveProperty('traceparent')
  expect(collector.spans().map((span) => span.name)).toEqual(['POST /v1/webhooks'])
})

test('a request begins a trace of its own where the header names none', async () => {
  const service = await startTraced({}, { roles: { worker: false } })
  const hostile = [
    'x'.repeat(4_000),
    `00-${'0'.repeat(32)}-${clientSpan}-01`,
    `${traceparent}\tand more`,
    `00-${traceId.toUpperCase()}-${clientSpan}-01`,
    "'; DROP TABLE events; --",
  ]
  for (const [index, value] of hostile.entries()) {
    const body = { email: `person-${index}@example.com` }
    await service.client.succeed(contract.subscribers.create, { body }, { headers: { traceparent: value } })
  }
  const kept = await keptIn(service)
  await service.stop()
  const requests = named('POST /v1/subscribers')
  expect(requests.map((span) => span.parentSpanId ?? '')).toEqual(hostile.map(() => ''))
  expect(new Set(requests.map((span) => span.traceId)).add(traceId).size).toBe(hostile.length + 1)
  expect(kept).toEqual(requests.map((span) => `00-${span.traceId}-${span.spanId}-01`))
})

test('a request with two traceparent headers begins a trace of its own as well', async () => {
  const service = await startTraced({}, { roles: { worker: false } })
  const head = 'GET /v1/event-types HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
  const other = traceparent.replace(traceId, traceId.replace('4', '5'))
  await sendRaw(service.url, {
    path: '/v1/event-types',
    bytes: `${head}traceparent: ${traceparent}\r\ntraceparent: ${other}\r\n\r\n`,
  })
  await service.stop()
  expect(only('GET /v1/event-types').traceId).not.toBe(traceId)
})

test("a request is an error when it is ours, and none when it is the client's", async () => {
  const service = await startTraced({}, { roles: { worker: false }, expectErrors: true })
  await service.client.send('GET', '/v1/no-such-thing')
  await service.database.db.schema.alterTable('subscribers').renameTo('elsewhere').execute()
  await service.client.send('GET', '/v1/subscribers')
  await service.stop()
  expect(only('GET unmatched')).toMatchObject({
    attributes: { 'http.response.status_code': 404 },
    status: { code: 0 },
  })
  expect(only('GET /v1/subscribers')).toMatchObject({
    attributes: { 'http.response.status_code': 500, 'error.type': '500' },
    status: { code: 2 },
  })
})

test('a request for the health of the process is not recorded', async () => {
  const service = await startTraced({}, { roles: { worker: false } })
  for (const path of ['/healthz', '/readyz', '/metrics']) await service.client.send('GET', path)
  await service.stop()
  expect(collector.spans()).toEqual([])
})

test('the test of a webhook is recorded with its attempt', async () => {
  const service = await startTraced({}, { roles: { worker: false } })
  const { id } = await service.client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
  await service.client.succeed(contract.webhooks.test, { params: { id }, body: {} }, { headers: { traceparent } })
  await service.stop()
  const request = only('POST /v1/webhooks/:id/test')
  expect(only('delivery attempt')).toMatchObject({
    traceId,
    parentSpanId: request.spanId,
    attributes: { 'postern.webhook.id': id, 'postern.attempt.number': 1 },
  })
  expect(receiver.requests[0]?.headers.traceparent).toContain(traceId)
})

test('what is exported holds no body, no key, no secret, and of an endpoint only where it is', async () => {
  const service = await startTraced()
  const { secret } = await service.client.succeed(contract.webhooks.create, {
    body: { url: `${receiver.url}/path-secret?token=query-secret`, events: ['subscriber.added'] },
  })
  await service.client.succeed(
    contract.subscribers.create,
    { body: { email: 'ada@example.com', firstName: 'Ada' } },
    { headers: { traceparent, tracestate: 'vendor=state-secret', baggage: 'user=baggage-secret' } },
  )
  await service.client.succeed(contract.subscribers.list, { query: { email: 'ada@example.com' } })
  await receiver.received(1)
  await service.stop()
  expect(named('delivery attempt')).toHaveLength(1)
  const text = collector.receiver.requests.map(({ body }) => body.toString('utf8')).join()
  const secrets = [service.keys.live, secret, 'path-secret', 'query-secret', 'state-secret', 'baggage-secret']
  for (const hidden of [...secrets, 'ada@example.com', 'Ada']) expect(text).not.toContain(hidden)
})

test('a process that does not trace keeps nothing of a trace', async () => {
  const service = await startTestService()
  await cause(service, { traceparent })
  const [delivered] = await receiver.received(1)
  expect(await keptIn(service)).toEqual([null])
  expect(delivered?.headers).not.toHaveProperty('traceparent')
  await service.stop()
  expect(collector.receiver.requests).toEqual([])
})

test('a process that does not trace passes on the trace another process has begun', async () => {
  const api = await startTraced({}, { roles: { worker: false } })
  const worker = await startTestService({ beside: api, roles: { api: false } })
  await cause(api, { traceparent })
  const [delivered] = await receiver.received(1)
  await worker.stop()
  await api.stop()
  expect(delivered?.headers.traceparent).toBe(`00-${traceId}-${only('POST /v1/subscribers').spanId}-01`)
})

test('a collector that is away holds up neither requests, nor deliveries, nor the end', async () => {
  const service = await startTraced({ endpoint: deadUrl })
  await cause(service, { traceparent })
  await receiver.received(1)
  await service.stop()
  expect(collector.receiver.requests).toEqual([])
})
