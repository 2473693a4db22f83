import { expect, test } from 'vitest'
import type { Settlement } from '../../../server/webhook-delivery/settlement/settlement-types.ts'
import { healthChanges, type WebhookState } from '../../../server/webhook-delivery/settlement/webhook-health.ts'

const url = 'https://example.com/hooks'

function settlement(
  webhookId: string,
  kind: 'succeeded' | 'retry' | 'gone',
  { at = url, sample = false } = {},
): Settlement {
  const verdict = kind === 'succeeded' ? { kind } : { kind, error: 'no', delaySeconds: 60 }
  return { delivery: { webhookId, sample, webhook: { url: at } }, verdict } as unknown as Settlement
}

function state(id: string, options: Partial<WebhookState> = {}): WebhookState {
  return { id, url, failing: false, expired: false, attempts: options.failing ? 1 : 0, ...options }
}

const nothing = { gone: [], beginning: [], continuing: [], expired: [], recovered: [] }

test('what a batch says of the health of webhooks begins, continues and ends a run of failures', () => {
  const batch = [settlement('new', 'retry'), settlement('old', 'retry'), settlement('back', 'succeeded')]
  const states = [state('new'), state('old', { failing: true }), state('back', { failing: true })]
  expect(healthChanges(batch, states)).toEqual({
    ...nothing,
    beginning: [{ id: 'new', attempts: 1 }],
    continuing: [{ id: 'old', attempts: 2 }],
    recovered: ['back'],
  })
})

test('what a batch says of the health of webhooks disables a webhook by one more failure when its run has lasted too long and had ten attempts', () => {
  const expiredAfter = (attempts: number) => [state('a', { failing: true, expired: true, attempts })]
  const failed = settlement('a', 'retry')
  expect(healthChanges([failed], expiredAfter(8))).toEqual({ ...nothing, continuing: [{ id: 'a', attempts: 9 }] })
  expect(healthChanges([failed], expiredAfter(9))).toEqual({ ...nothing, expired: ['a'] })
  expect(healthChanges([failed, failed], expiredAfter(8))).toEqual({ ...nothing, expired: ['a'] })
})

test('what a batch says of the health of webhooks counts attempts no further than is needed, so that a webhook that fails on is not written each time', () => {
  const failed = settlement('a', 'retry')
  expect(healthChanges([failed], [state('a', { failing: true, attempts: 9 })])).toEqual({
    ...nothing,
    continuing: [{ id: 'a', attempts: 10 }],
  })
  expect(healthChanges([failed], [state('a', { failing: true, attempts: 10 })])).toEqual(nothing)
})

test('what a batch says of the health of webhooks hears nothing from a sample that failed, and a success from one that did not', () => {
  const failing = [state('a', { failing: true, expired: true, attempts: 10 })]
  for (const kind of ['retry', 'gone'] as const) {
    expect(healthChanges([settlement('a', kind, { sample: true })], failing)).toEqual(nothing)
  }
  const taken = settlement('a', 'succeeded', { sample: true })
  expect(healthChanges([taken], failing)).toEqual({ ...nothing, recovered: ['a'] })
})

test('what a batch says of the health of webhooks lets one success in the batch speak for the webhook, whatever came after it', () => {
  const batch = [settlement('a', 'succeeded'), settlement('a', 'retry')]
  const states = [state('a', { failing: true, expired: true })]
  expect(healthChanges(batch, states)).toEqual({ ...nothing, recovered: ['a'] })
  expect(healthChanges(batch, [state('a')])).toEqual(nothing)
})

test('what a batch says of the health of webhooks lets 410 speak before all else, unless the webhook leads somewhere else by now', () => {
  const batch = [settlement('a', 'succeeded'), settlement('a', 'gone')]
  expect(healthChanges(batch, [state('a')])).toEqual({ ...nothing, gone: ['a'] })
  const old = { at: 'https://example.com/old' }
  expect(healthChanges([settlement('a', 'gone', old)], [state('a')])).toEqual(nothing)
  expect(healthChanges([settlement('a', 'retry', old)], [state('a')])).toEqual(nothing)
  expect(healthChanges([settlement('a', 'succeeded', old)], [state('a', { failing: true })])).toEqual(nothing)
})
