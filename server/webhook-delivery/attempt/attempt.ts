import type { Mode } from '../../../contract/mode.ts'
import type { Clock } from '../../lib/clock.ts'
import { noTracer, type Tracer } from '../../observability/tracing/tracer.ts'
import { endAttemptSpan, startAttemptSpan, type TracedAttempt } from './attempt-span.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import type { SigningKeys } from './keyring.ts'
import { secondsOf, signatureHeaders } from './signature.ts'

/** The URL and content of one attempt. */
export type AttemptTarget = SigningKeys & {
  eventId: string
  body: string
  /** The mode of the event. */
  mode: Mode
  url: string
  /** True for an event that was made up for a test. */
  sample: boolean
  /** The trace of the attempt. Default: the event is not traced. */
  traced?: TracedAttempt | null
}

export type AttemptMeans = {
  exchange: Exchange
  clock: Clock
  /** Default: records nothing. */
  tracer?: Tracer
}

/** Signs the stored body and posts it. The request of a traced event carries its `traceparent`. */
export async function attempt(
  { exchange, clock, tracer = noTracer }: AttemptMeans,
  target: AttemptTarget,
  signal?: AbortSignal,
): Promise<ExchangeOutcome> {
  const span = startAttemptSpan(tracer, target)
  // If the attempt is not recorded here, the receiver still continues the trace of the event.
  const traceparent = span.traceparent ?? target.traced?.traceparent
  const startedAt = clock.now()
  const headers = {
    ...unsignedHeaders(target, startedAt),
    ...signatureHeaders({ ...target, timestamp: startedAt }),
    ...(traceparent !== undefined && { traceparent }),
  }
  const outcome = await exchange.send({ url: target.url, headers, body: target.body, startedAt }, signal)
  endAttemptSpan(span, outcome)
  return outcome
}

/**
 * Returns the headers of an attempt that can be told afterwards: all but the signatures, which are made with the secrets
 * of that moment, and `traceparent`.
 */
export function unsignedHeaders(
  { eventId, mode, sample }: Pick<AttemptTarget, 'eventId' | 'mode' | 'sample'>,
  startedAt: Date,
): Record<string, string> {
  return {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Postern-Webhooks/1',
    'webhook-id': eventId,
    'webhook-timestamp': secondsOf(startedAt),
    'x-service-mode': mode,
    ...(sample && { 'x-service-sample': 'true' }),
  }
}

/** The outcome of an attempt that failed because of a fault of the service. The log has the cause. */
export const faultOfOurs = {
  kind: 'failed',
  durationMs: 0,
  stage: 'before-sending',
  reason: 'unreachable',
  message: 'The attempt could not be made because of a fault of the service. Ask its operator.',
  partialAnswer: null,
  reposted: false,
} as const
