import { type Attributes, type Span, type Tracer, unrecorded } from '../../observability/tracing/tracer.ts'
import type { DueDelivery } from '../load-deliveries.ts'
import { type ExchangeOutcome, loggedAnswer } from './exchange.ts'
import { faultOf } from './verdict.ts'

/** Attributes of a traced attempt, besides its URL and its outcome. */
export type TracedAttempt = {
  /** The trace of its event. */
  traceparent: string
  deliveryId: string
  webhookId: string
  /** 1 for the first attempt. */
  number: number
}

/** Returns the trace attributes of the next attempt of a delivery. Null: its event is not traced. */
export function tracedAttempt({
  id,
  webhookId,
  attemptCount,
  traceparent,
}: Pick<DueDelivery, 'id' | 'webhookId' | 'attemptCount' | 'traceparent'>): TracedAttempt | null {
  return traceparent === null ? null : { traceparent, deliveryId: id, webhookId, number: attemptCount + 1 }
}

type Target = { eventId: string; url: string; traced?: TracedAttempt | null }

/** Starts the span of an attempt. It records only the origin of the URL: path and query may contain secrets. */
export function startAttemptSpan(tracer: Tracer, { eventId, url, traced }: Target): Span {
  if (!traced) return unrecorded
  return tracer.start({
    name: 'delivery attempt',
    kind: 'client',
    parent: traced.traceparent,
    attributes: {
      'http.request.method': 'POST',
      ...serverOf(url),
      'postern.event.id': eventId,
      'postern.delivery.id': traced.deliveryId,
      'postern.webhook.id': traced.webhookId,
      'postern.attempt.number': traced.number,
    },
  })
}

function serverOf(url: string): Attributes {
  const parsed = URL.parse(url)
  if (parsed === null) return {}
  const { hostname, port, protocol } = parsed
  return {
    // Removes the brackets that a URL puts around an IPv6 address.
    'server.address': hostname.replace(/^\[(.*)\]$/, '$1'),
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  }
}

/** Ends the span with the status, or with the reason for the failure. It records nothing of the response body. */
export function endAttemptSpan(span: Span, outcome: ExchangeOutcome): void {
  const error = faultOf(outcome)
  const answer = loggedAnswer(outcome)
  span.end({
    attributes: {
      ...(answer !== null && { 'http.response.status_code': answer.status }),
      ...(error !== null && { 'error.type': outcome.kind === 'failed' ? outcome.reason : String(outcome.status) }),
    },
    ...(error !== null && { error }),
  })
}
