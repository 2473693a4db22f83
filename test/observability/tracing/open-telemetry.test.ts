import { createServer, type Server } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLogger } from '../../../server/observability/logging.ts'
import {
  createOpenTelemetryTracer,
  type OpenTelemetryOptions,
} from '../../../server/observability/tracing/open-telemetry.ts'
import { parseTraceparent } from '../../../server/observability/tracing/traceparent.ts'
import type { Tracer } from '../../../server/observability/tracing/tracer.ts'
import { type Collector, startCollector } from '../../support/collector.ts'
import { answer, silence } from '../../support/receiver.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const sampledParent = `00-${traceId}-00f067aa0ba902b7-01`
const unsampledParent = `00-${traceId}-00f067aa0ba902b7-00`
/** The spans of one export. */
const batch = 512

let collector: Collector
let logged: string[]

beforeEach(async () => {
  collector = await startCollector()
  logged = []
})
afterEach(() => collector[Symbol.asyncDispose]())

function start(options: Partial<OpenTelemetryOptions> = {}): Tracer {
  return createOpenTelemetryTracer({
    endpoint: collector.endpoint,
    headers: {},
    serviceName: 'postern',
    sampler: 'parentbased_always_on',
    samplerRatio: 1,
    logger: createLogger({ level: 'info', destination: { write: (line) => void logged.push(JSON.parse(line).msg) } }),
    ...options,
  })
}

function record(tracer: Tracer, { count = 1, parent = null }: { count?: number; parent?: string | null } = {}) {
  return Array.from({ length: count }, () => {
    const span = tracer.start({ name: 'work', kind: 'internal', parent })
    span.end()
    return span
  })
}

const rows: [OpenTelemetryOptions['sampler'], number, Record<'root' | 'sampled' | 'unsampled', boolean>][] = [
  ['always_on', 1, { root: true, sampled: true, unsampled: true }],
  ['always_off', 1, { root: false, sampled: false, unsampled: false }],
  ['traceidratio', 0, { root: false, sampled: false, unsampled: false }],
  ['traceidratio', 1, { root: true, sampled: true, unsampled: true }],
  ['parentbased_always_on', 1, { root: true, sampled: true, unsampled: false }],
  ['parentbased_always_off', 1, { root: false, sampled: true, unsampled: false }],
  ['parentbased_traceidratio', 0, { root: false, sampled: true, unsampled: false }],
  ['parentbased_traceidratio', 1, { root: true, sampled: true, unsampled: false }],
]
test.each(rows)('a span is recorded or not: %s with %d', async (sampler, samplerRatio, expected) => {
  const tracer = start({ sampler, samplerRatio })
  const parents = { root: null, sampled: sampledParent, unsampled: unsampledParent }
  const recorded = Object.entries(parents).map(([name, parent]) => [
    name,
    record(tracer, { parent })[0]?.traceparent !== null,
  ])
  expect(Object.fromEntries(recorded)).toEqual(expected)
  await tracer.stop()
  expect(collector.spans()).toHaveLength(Object.values(expected).filter(Boolean).length)
})

test('a span begins a trace of its own where the parent is none', async () => {
  const tracer = start()
  const [span] = record(tracer, { parent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` })
  expect(parseTraceparent(span?.traceparent ?? '')?.traceId).not.toMatch(/^0+$/)
  await tracer.stop()
  expect(collector.spans()[0]?.parentSpanId ?? '').toBe('')
})

test('the current span is the one the work is done in, also after it has waited', async () => {
  const tracer = start()
  const span = tracer.start({ name: 'work', kind: 'internal', parent: null })
  expect(tracer.current().traceparent).toBeNull()
  await tracer.within(span, async () => {
    await new Promise((resolve) => setImmediate(resolve))
    expect(tracer.current()).toBe(span)
  })
  expect(tracer.current().traceparent).toBeNull()
  await tracer.stop()
})

test('a long text is cut', async () => {
  const tracer = start()
  const attributes = { 'server.address': 'a'.repeat(100_000) }
  tracer.start({ name: 'work', kind: 'internal', parent: null, attributes }).end()
  await tracer.stop()
  expect(collector.spans()[0]?.attributes['server.address']).toBe('a'.repeat(1_024))
})

describe('a collector that is away', () => {
  let hole: Server
  let endpoint: string

  beforeEach(async () => {
    hole = createServer((socket) => socket.resetAndDestroy())
    await new Promise<void>((resolve) => hole.listen(0, '127.0.0.1', resolve))
    const address = hole.address()
    endpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1/traces`
  })
  afterEach(() => new Promise((resolve) => hole.close(resolve)))

  test('a collector that is away is logged once, whatever is recorded', async () => {
    const tracer = start({ endpoint, exportTimeoutMs: 200 })
    record(tracer, { count: 4 * batch })
    await tracer.stop()
    expect(logged).toEqual([expect.stringContaining(`traces cannot be sent to ${endpoint} (`)])
  })

  test('a collector that is away is told again when it is back', async () => {
    collector.receiver.respondOnce(answer(400))
    const tracer = start()
    record(tracer, { count: 2 * batch })
    await tracer.stop()
    expect(logged).toEqual([expect.stringContaining('(Bad Request)'), `traces are sent to ${collector.endpoint} again`])
  })

  test('a collector that is away does not keep the service from stopping when it is silent', async () => {
    collector.receiver.respond(silence)
    const tracer = start({ exportTimeoutMs: 600_000 })
    record(tracer)
    await expect(tracer.stop()).resolves.toBeUndefined()
  })

  test('a collector that is away costs no more memory than that of 8,192 spans', async () => {
    const { promise: answered, resolve: answerAll } = Promise.withResolvers<void>()
    collector.receiver.respond(({ response }) => void answered.then(() => response.end('{}')))
    const tracer = start()
    // The first batch is being sent when the others end.
    record(tracer, { count: batch })
    await collector.receiver.received(1)
    record(tracer, { count: 10_000 })
    answerAll()
    await collector.receiver.received(1 + 8_192 / batch)
    await tracer.stop()
    expect(collector.spans()).toHaveLength(batch + 8_192)
  })
})
