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
import { timeout } from '../../lib/timer.ts'
import { tellOfFailures } from './exporter.ts'
import type { TracingConfig } from './settings.ts'
import { formatTraceparent, parseTraceparent } from './traceparent.ts'
import { type Span, type SpanStart, type Tracer, unrecorded } from './tracer.ts'

export type OpenTelemetryOptions = TracingConfig & {
  logger: Logger
  /** Milliseconds for one export with its retries, after which its spans are dropped. Default 5,000. */
  exportTimeoutMs?: number
}

/** Most ended spans in the queue, about 20 MB. Further ones are dropped. */
const maxWaiting = 8_192
/** Most milliseconds to flush spans when stopping: less than the rest of the shutdown may take. */
const flushTimeoutMs = 2_000
/** Most characters of an attribute: some texts, such as the name of an endpoint, are chosen by customers. */
const maxTextLength = 1_024

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

/**
 * Creates a tracer that sends spans to a collector in batches, as OTLP over HTTP in JSON, in the background. While the
 * collector fails, spans are dropped. The start and the end of a failure are logged.
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
