import { expect, test } from 'vitest'
import type { ExchangeOutcome } from '../../../server/webhook-delivery/attempt/exchange.ts'
import { faultOf, verdictOf } from '../../../server/webhook-delivery/attempt/verdict.ts'

function answered(status: number, retryAfterSeconds: number | null = null): ExchangeOutcome {
  return {
    kind: 'answered',
    startedAt: new Date(0),
    durationMs: 5,
    status,
    body: '',
    retryAfterSeconds,
    reposted: false,
  }
}

const refused: ExchangeOutcome = {
  kind: 'failed',
  startedAt: new Date(0),
  durationMs: 1,
  stage: 'before-sending',
  reason: 'connection-refused',
  message: 'The connection was refused.',
  partialAnswer: null,
  reposted: false,
}

test.each([200, 201, 202, 204, 299])('the verdict on an attempt takes %i for success', (status) => {
  expect(verdictOf(answered(status), 1)).toEqual({ kind: 'succeeded' })
})

test.each([301, 302, 307, 308])(
  'the verdict on an attempt takes the redirect %i for a failure and says what to do',
  (status) => {
    expect(faultOf(answered(status))).toMatch(/redirect.*set the final URL/i)
    expect(verdictOf(answered(status), 1)).toMatchObject({ kind: 'retry', delaySeconds: 60 })
  },
)

test('the verdict on an attempt takes 410 for the end of the webhook', () => {
  expect(verdictOf(answered(410), 1)).toMatchObject({ kind: 'gone' })
})

test.each([429, 503])('the verdict on an attempt waits as long as an answer of %i asks for', (status) => {
  expect(verdictOf(answered(status, 7_000), 1)).toMatchObject({ kind: 'retry', delaySeconds: 7_000 })
})

test('the verdict on an attempt does not listen to Retry-After of other answers', () => {
  expect(verdictOf(answered(500, 7_000), 1)).toMatchObject({ kind: 'retry', delaySeconds: 60 })
})

test('the verdict on an attempt gives up after the first attempt and five retries', () => {
  const kinds = [1, 2, 3, 4, 5, 6].map((position) => verdictOf(refused, position).kind)
  expect(kinds).toEqual(['retry', 'retry', 'retry', 'retry', 'retry', 'failed'])
})
