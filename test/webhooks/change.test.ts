import { expect, test } from 'vitest'
import type { Webhook } from '../../contract/webhooks.ts'
import { webhookChange } from '../../server/webhooks/change.ts'

const enabled: Webhook = {
  id: 'wh_01jqz4x7m8e5v9t2k6r3w0y1ab',
  mode: 'live',
  url: 'https://example.com/hooks',
  events: ['contact.created', 'contact.updated'],
  description: null,
  metadata: {},
  status: 'enabled',
  disabledReason: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:00.000Z',
}
const failing: Webhook = { ...enabled, status: 'disabled', disabledReason: 'failing' }

test('what is given as it is, or not given, is no change', () => {
  const { url, events, description, status } = enabled
  for (const patch of [{}, { url, events: [...events], description, status }]) {
    expect(webhookChange(enabled, patch)).toMatchObject({ changes: [], forgiven: false })
  }
})

test.each([
  { url: 'https://example.com/others' },
  { events: ['contact.created' as const] },
  { events: enabled.events.toReversed() },
  { description: 'CRM' },
  { status: 'disabled' as const },
])('%o is a change', (patch) => {
  expect(webhookChange(enabled, patch)).toMatchObject({ changes: Object.keys(patch), after: patch })
})

test('disabling by request is "manual"; asking for it again keeps an older reason', () => {
  expect(webhookChange(enabled, { status: 'disabled' }).after.disabledReason).toBe('manual')
  expect(webhookChange(failing, { status: 'disabled', description: 'CRM' }).after.disabledReason).toBe('failing')
})

test('enabling and another URL forgive, nothing else does', () => {
  expect(webhookChange(failing, { status: 'enabled' })).toMatchObject({
    forgiven: true,
    after: { disabledReason: null },
  })
  expect(webhookChange(enabled, { url: 'https://example.com/others' }).forgiven).toBe(true)
  expect(webhookChange(enabled, { status: 'disabled' }).forgiven).toBe(false)
  expect(webhookChange(enabled, { events: ['contact.deleted'] }).forgiven).toBe(false)
})
