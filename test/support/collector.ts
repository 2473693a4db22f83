import { z } from 'zod'
import { type Receiver, startReceiver } from './receiver.ts'

const attributes = z
  .array(z.object({ key: z.string(), value: z.record(z.string(), z.unknown()) }))
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]])))

const span = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().nullish(),
  name: z.string(),
  kind: z.number(),
  attributes,
  events: z.array(z.object({ name: z.string(), attributes })),
  status: z.object({ code: z.number(), message: z.string().optional() }),
})

/** Source: OTLP 1.x, ExportTraceServiceRequest in JSON. */
const exported = z.object({
  resourceSpans: z.array(
    z.object({ resource: z.object({ attributes }), scopeSpans: z.array(z.object({ spans: z.array(span) })) }),
  ),
})

/** A span as it was exported. */
export type CollectedSpan = z.output<typeof span> & { service: unknown }

export type Collector = AsyncDisposable & {
  /** Where spans are posted to. */
  endpoint: string
  /** The requests it got, and how it answers them. */
  receiver: Receiver
  /** All it has got so far. */
  spans(): CollectedSpan[]
}

/** A real collector on loopback that takes OTLP over HTTP in JSON. */
export async function startCollector(): Promise<Collector> {
  const receiver = await startReceiver()
  return {
    endpoint: `http://127.0.0.1:${receiver.port}/v1/traces`,
    receiver,
    spans: () => receiver.requests.flatMap(({ body }) => spansOf(JSON.parse(body.toString('utf8')))),
    [Symbol.asyncDispose]: () => receiver.stop(),
  }
}

function spansOf(body: unknown): CollectedSpan[] {
  return exported
    .parse(body)
    .resourceSpans.flatMap(({ resource, scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) => spans.map((one) => ({ ...one, service: resource.attributes['service.name'] }))),
    )
}
