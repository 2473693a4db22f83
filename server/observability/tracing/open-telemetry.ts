import { AsyncLocalStorage } from 'node:async_hooks'
import { type Attributes as OtelAttributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import { tellOfFailures } from './exporter.ts'
import type { TracingConfig } from './settings.ts'
import { formatTraceparent, parseTraceparent } from './traceparent.ts'
import { type Span, type SpanStart, type Tracer, unrecorded } from './tracer.ts'

export type OpenTelemetryOptions = TracingConfig & {
  logger: Logger
  /** Milliseconds for one export with its repetitions, after which its spans are dropped. Default 5,000. */
  exportTimeoutMs?: number
}

/** Spans that wait to be sent. What ends when there are so many is dropped: some 20 MB at most. */
const maxWaiting = 8_192
/** What stopping waits for at most: less than closing the rest may take. Milliseconds. */
const flushTimeoutMs = 2_000
/** An endpoint may be named by its owner: no more of a text than anybody reads. */
const maxTextLength = 1_024

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

/**
 * Records spans and sends them to a collector, as OTLP over HTTP in JSON, in batches and behind the
 * back of what is recorded. While the collector does not take them they are dropped; that is logged
 * once, and again when it is over.
 */
export function createOpenTelemetryTracer(options: OpenTelemetryOptions): Tracer {
  const { endpoint, headers, logger, exportTimeoutMs = 5_000 } = options
  const exporter = new OTLPTraceExporter({ url: endpoint, headers, timeoutMillis: exportTimeoutMs })
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes({ 'service.name': options.serviceName })),
    sampler: samplerOf(options),
    spanLimits: { attributeValueLengthLimit: maxTextLength },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: tellOfFailures(exporter, { endpoint, logger }),
        maxQueueSize: maxWaiting,
        scheduledDelayMillis: 1_000,
        exportTimeoutMillis: 2 * exportTimeoutMs,
      }),
    ],
  })
  const tracer = provider.getTracer('postern')
  const spans = new AsyncLocalStorage<Span>()

  function start({ name, kind, parent, attributes, startedAt }: SpanStart): Span {
    const span = tracer.startSpan(
      name,
      {
        kind: kinds[kind],
        ...(attributes !== undefined && { attributes: { ...attributes } }),
        ...(startedAt !== undefined && { startTime: startedAt }),
      },
      contextOf(parent),
    )
    if (!span.isRecording()) return unrecorded
    const { traceId, spanId } = span.spanContext()
    return {
      traceparent: formatTraceparent({ traceId, spanId, sampled: true }),
      note: (event, noted: OtelAttributes) => void span.addEvent(event, noted),
      end({ name: finalName, attributes: found, error, endedAt } = {}) {
        if (finalName !== undefined) span.updateName(finalName)
        if (found !== undefined) span.setAttributes({ ...found })
        if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
        span.end(endedAt)
      },
    }
  }

  let stopped: Promise<void> | undefined
  return {
    start,
    within: (span, work) => spans.run(span, work),
    current: () => spans.getStore() ?? unrecorded,
    stop() {
      stopped ??= Promise.race([provider.shutdown().catch(() => undefined), timeout(flushTimeoutMs)])
      return stopped
    },
  }
}

function contextOf(parent: string | null) {
  const read = parent === null ? null : parseTraceparent(parent)
  if (read === null) return ROOT_CONTEXT
  const { traceId, spanId, sampled } = read
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: sampled ? 1 : 0, isRemote: true })
}

/** Source: OpenTelemetry specification, "General SDK Configuration", OTEL_TRACES_SAMPLER. */
function samplerOf({ sampler, samplerRatio }: Pick<TracingConfig, 'sampler' | 'samplerRatio'>): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler()
    case 'always_off':
      return new AlwaysOffSampler()
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(samplerRatio)
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() })
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() })
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(samplerRatio) })
  }
}

/** Does not keep the process alive by itself. */
function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}
