import type { ExchangeOutcome } from './exchange.ts'
import { nextDelaySeconds } from './retry-schedule.ts'

/** The consequence of an attempt for its delivery and its webhook. */
export type Verdict =
  | { kind: 'succeeded' }
  | { kind: 'retry'; delaySeconds: number; error: string }
  | { kind: 'failed'; error: string }
  /** The endpoint says that it is gone for good: no retry, and the webhook is disabled. */
  | { kind: 'gone'; error: string }

/** Returns why an exchange was no success, as a sentence for the customer. Null: it was a success. */
export function faultOf(outcome: ExchangeOutcome): string | null {
  if (outcome.kind === 'failed') return outcome.message
  if (outcome.status >= 200 && outcome.status < 300) return null
  if (outcome.status >= 300 && outcome.status < 400) {
    return `The endpoint answered ${outcome.status}, a redirect. Redirects are not followed: set the final URL on the webhook.`
  }
  if (outcome.status === 410) return 'The endpoint answered 410: it is gone for good.'
  return `The endpoint answered ${outcome.status}. Answer any 2xx status to accept an event.`
}

/**
 * Decides what an attempt means for its delivery.
 *
 * @param position Attempts of the schedule so far, this one included: 1 for the first.
 */
export function verdictOf(outcome: ExchangeOutcome, position: number): Verdict {
  const error = faultOf(outcome)
  if (error === null) return { kind: 'succeeded' }
  if (outcome.kind === 'answered' && outcome.status === 410) return { kind: 'gone', error }
  const askedFor =
    outcome.kind === 'answered' && (outcome.status === 429 || outcome.status === 503) ? outcome.retryAfterSeconds : null
  const delaySeconds = nextDelaySeconds(position, askedFor)
  return delaySeconds === null ? { kind: 'failed', error } : { kind: 'retry', delaySeconds, error }
}
