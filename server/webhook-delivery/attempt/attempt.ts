import type { Mode } from '../../../contract/mode.ts'
import type { Clock } from '../../lib/clock.ts'
import { noTracer, type Tracer } from '../../observability/tracing/tracer.ts'
import { endAttemptSpan, startAttemptSpan, type TracedAttempt } from './attempt-span.ts'
import type { Exchange, ExchangeOutcome } from './exchange.ts'
import type { SigningKeys } from './keyring.ts'
import { signatureHeaders } from './signature.ts'

/** What one attempt sends, and where. */
export type AttemptTarget = SigningKeys & {
  eventId: string
  body: string
  /** That of the event. */
  mode: Mode
  url: string
  /** Whether the event was made up for a test. */
  sample: boolean
  /** What its trace says of it. Default: its event is in none. */
  traced?: TracedAttempt | null
}

export type AttemptMeans = {
  exchange: Exchange
  clock: Clock
  /** Default: nothing is recorded. */
  tracer?: Tracer
}

/** Signs the body as stored and posts it. An event that is traced is sent with its `traceparent`. */
export async function attempt(
  { exchange, clock, tracer = noTracer }: AttemptMeans,
  target: AttemptTarget,
  signal?: AbortSignal,
): Promise<ExchangeOutcome> {
  const span = startAttemptSpan(tracer, target)
  // Where it is not recorded here, the trace still goes on at the receiver.
  const traceparent = span.traceparent ?? target.traced?.traceparent
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Postern-Webhooks/1',
    'x-service-mode': target.mode,
    ...signatureHeaders({
      eventId: target.eventId,
      body: target.body,
      timestamp: clock.now(),
      key: target.key,
      previousKeys: target.previousKeys,
    }),
    ...(target.sample && { 'x-service-sample': 'true' }),
    ...(traceparent !== undefined && { traceparent }),
  }
  const outcome = await exchange.send({ url: target.url, headers, body: target.body }, signal)
  endAttemptSpan(span, outcome)
  return outcome
}

/** What is told of an attempt that could not be made because of us; why stands in the log. */
export const faultOfOurs = {
  kind: 'failed',
  durationMs: 0,
  stage: 'before-sending',
  reason: 'unreachable',
  message: 'The attempt could not be made because of a fault of the service. Ask its operator.',
  partialAnswer: null,
  reposted: false,
} as const
