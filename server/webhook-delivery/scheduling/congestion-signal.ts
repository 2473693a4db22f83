import type { ExchangeOutcome } from '../attempt/exchange.ts'
import type { RequestEnd } from './scheduler-types.ts'

/**
 * Returns what an exchange says about the load that its endpoint can take. A quick 4xx or 5xx other than 429 and 503 is
 * an ordinary response.
 *
 * @param isBusy True when this process is overloaded.
 */
export function signalOf(outcome: ExchangeOutcome, isBusy: boolean): RequestEnd {
  const { durationMs: latencyMs } = outcome
  if (outcome.kind === 'answered') {
    const isRefused = outcome.status === 429 || outcome.status === 503
    return isRefused ? { kind: 'congested', sign: 'refused' } : { kind: 'answered', latencyMs, isBusy }
  }
  switch (outcome.reason) {
    case 'timed-out':
      return { kind: 'congested', sign: 'timed_out' }
    // The endpoint did respond, or no request was sent.
    case 'invalid-answer':
    case 'invalid-url':
    case 'invalid-request':
      return { kind: 'answered', latencyMs, isBusy }
    default:
      return { kind: 'congested', sign: 'connection_failed' }
  }
}
