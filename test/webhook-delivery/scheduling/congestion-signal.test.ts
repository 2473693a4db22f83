import { expect, test } from 'vitest'
import type { ExchangeOutcome } from '../../../server/webhook-delivery/attempt/exchange.ts'
import type { FailureReason } from '../../../server/webhook-delivery/attempt/exchange-failure.ts'
import { signalOf } from '../../../server/webhook-delivery/scheduling/congestion-signal.ts'

const made = { startedAt: new Date(0), durationMs: 7, reposted: false }

const answered = (status: number): ExchangeOutcome => ({
  ...made,
  kind: 'answered',
  status,
  body: '',
  retryAfterSeconds: null,
})

const failed = (reason: FailureReason): ExchangeOutcome => ({
  ...made,
  kind: 'failed',
  stage: 'while-sending',
  reason,
  message: 'no',
  partialAnswer: null,
})

test.each([200, 204, 302, 400, 404, 410, 500, 502])('a quick %i is an answer', (status) => {
  expect(signalOf(answered(status), true)).toEqual({ kind: 'answered', latencyMs: 7, isBusy: true })
})

test.each([429, 503])('%i asks for less', (status) => {
  expect(signalOf(answered(status), false)).toEqual({ kind: 'congested', sign: 'refused' })
})

test.each<[FailureReason, unknown]>([
  ['timed-out', { kind: 'congested', sign: 'timed_out' }],
  ['connection-refused', { kind: 'congested', sign: 'connection_failed' }],
  ['connection-lost', { kind: 'congested', sign: 'connection_failed' }],
  ['name-not-found', { kind: 'congested', sign: 'connection_failed' }],
  ['tls', { kind: 'congested', sign: 'connection_failed' }],
  ['invalid-answer', { kind: 'answered', latencyMs: 7, isBusy: false }],
  ['invalid-url', { kind: 'answered', latencyMs: 7, isBusy: false }],
])('a failure of the kind %s is judged', (reason, end) => {
  expect(signalOf(failed(reason), false)).toEqual(end)
})
