import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../server/delivery/settlement.ts'
import { healthChanges, type WebhookState } from '../../server/delivery/webhook-health.ts'

const url = 'https://example.com/hooks'

function settlement(webhookId: string, kind: 'succeeded' | 'retry' | 'gone', at = url): Settlement {
  const verdict = kind === 'succeeded' ? { kind } : { kind, error: 'no', delaySeconds: 60 }
  return { delivery: { webhookId, webhook: { url: at } }, verdict } as unknown as Settlement
}

function state(id: string, { failing = false, expired = false } = {}): WebhookState {
  return { id, url, failing, expired }
}

const nothing = { gone: [], beginning: [], expired: [], recovered: [] }

describe('what a batch says of the health of webhooks', () => {
  it('begins, continues and ends a run of failures', () => {
    const batch = [settlement('new', 'retry'), settlement('old', 'retry'), settlement('back', 'succeeded')]
    const states = [state('new'), state('old', { failing: true }), state('back', { failing: true })]
    expect(healthChanges(batch, states)).toEqual({ ...nothing, beginning: ['new'], recovered: ['back'] })
  })

  it('ends a webhook by one more failure when its run has lasted too long', () => {
    const states = [state('a', { failing: true, expired: true })]
    expect(healthChanges([settlement('a', 'retry')], states)).toEqual({ ...nothing, expired: ['a'] })
  })

  it('lets one success in the batch speak for the webhook, whatever came after it', () => {
    const batch = [settlement('a', 'succeeded'), settlement('a', 'retry')]
    const states = [state('a', { failing: true, expired: true })]
    expect(healthChanges(batch, states)).toEqual({ ...nothing, recovered: ['a'] })
    expect(healthChanges(batch, [state('a')])).toEqual(nothing)
  })

  it('lets 410 speak before all else, unless the webhook leads somewhere else by now', () => {
    const batch = [settlement('a', 'succeeded'), settlement('a', 'gone')]
    expect(healthChanges(batch, [state('a')])).toEqual({ ...nothing, gone: ['a'] })
    const elsewhere = [settlement('a', 'gone', 'https://example.com/old')]
    expect(healthChanges(elsewhere, [state('a')])).toEqual({ ...nothing, beginning: ['a'] })
  })
})
