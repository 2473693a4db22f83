import { expect, test } from 'vitest'
import type { RecipientStatus } from '../../server/database/tables/emails.ts'
import { statusOfEmail } from '../../server/email-delivery/email-status.ts'

test.each<[RecipientStatus[], string]>([
  [['queued', 'queued'], 'queued'],
  [['queued', 'suppressed', 'validated'], 'queued'],
  [['queued', 'bounced'], 'sending'],
  [['delivered', 'deferred'], 'sending'],
  [['sending'], 'sending'],
  [['accepted', 'delivered'], 'sent'],
  [['delivered', 'delivered'], 'delivered'],
  [['delivered', 'suppressed'], 'delivered'],
  [['delivered', 'complained'], 'delivered'],
  [['delivered', 'bounced'], 'sent'],
  [['bounced', 'failed'], 'bounced'],
  [['failed', 'suppressed'], 'failed'],
  [['suppressed'], 'suppressed'],
  [['canceled', 'canceled'], 'canceled'],
  [['validated'], 'validated'],
  [['validated', 'delivered'], 'delivered'],
])('%j is %s', (recipients, status) => {
  expect(statusOfEmail(recipients)).toBe(status)
})
