import { describe, expect, it } from 'vitest'
import type { Settlement } from '../../server/delivery/settlement.ts'
import { healthChanges } from '../../server/delivery/webhook-health.ts'

function settlement(webhookId: string, kind: 'succeeded' | 'retry' | 'gone', failing = false): Settlement {
  const verdict = kind === 'succeeded' ? { kind } : { kind, error: 'no', delaySeconds: 60 }
  return { delivery: { webhookId, webhook: { failing } }, verdict } as unknown as Settlement
}

describe('what a batch says of the health of webhooks', () => {
  it('touches nothing where a healthy webhook succeeds', () => {
    const changes = healthChanges([settlement('a', 'succeeded'), settlement('a', 'succeeded')])
    expect(Object.values(changes).flat()).toEqual([])
  })

  it('begins, continues and ends a run of failures', () => {
    const changes = healthChanges([
      settlement('new', 'retry'),
      settlement('old', 'retry', true),
      settlement('back', 'succeeded', true),
    ])
    expect(changes).toEqual({ gone: [], beginning: ['new'], continuing: ['old'], recovered: ['back'] })
  })

  it('lets one success in the batch speak for the webhook, whatever came after it', () => {
    const changes = healthChanges([settlement('a', 'succeeded', true), settlement('a', 'retry', true)])
    expect(changes).toMatchObject({ continuing: [], recovered: ['a'] })
  })

  it('lets 410 speak before all else', () => {
    const changes = healthChanges([settlement('a', 'succeeded'), settlement('a', 'gone')])
    expect(changes).toMatchObject({ gone: ['a'], recovered: [] })
  })
})
