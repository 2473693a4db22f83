import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { TracingConfig } from '../../server/tracing/settings.ts'
import { createTestTime } from '../support/clock.ts'
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestServiceOptions } from '../support/service.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const clientSpan = '00f067aa0ba902b7'
const traceparent = `00-${traceId}-${clientSpan}-01`

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

describe('a request of a client that traces', () => {
  it('goes on over the outbox and the fan-out to the attempt and the receiver', async () => {
    const service = await startTraced({ headers: { 'x-collector-key': 'let me in' } })
    const { client } = service
    const webhook = await client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['subscriber.added'] },
    })
    const body = { email: 'ada@example.com' }
    await client.succeed(contract.subscribers.create, { body }, { headers: { traceparent } })
    const [delivered] = await receiver.received(1)
    const { data } = await client.succeed(contract.deliveries.list, { params: { id: webhook.id }, query: {} })
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

  it('shows every attempt, with why it failed', async () => {
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
    await time.queueClock.setTime(time.queueClock.now() + 61_000)
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
})

async function pendingRetries({ database }: Awaited<ReturnType<typeof startTraced>>): Promise<number> {
  const rows = await database.db.selectFrom('deliveries').select('id').where('attempt_count', '=', 1).execute()
  return rows.length
}
