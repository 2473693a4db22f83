import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { newId } from '../../server/shared/ids.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await resetToBefore(database.db, '0003')
})
afterAll(() => database.drop())

test('suppressed addresses from before sources were kept have the one that is known of them', async () => {
  const { db } = database
  const at = new Date('2026-03-01T09:30:00.000Z')
  const accountId = await seedAccount(db, at)
  const to = ['taken@example.org', 'refused@example.org']
  const emailId = await seedEmail(db, { accountId, at, to })
  await db.updateTable('email_recipients').set({ accepted_at: at }).where('position', '=', 0).execute()
  const entry = (address: string, reason: 'hard_bounce' | 'complaint' | 'unsubscribe' | 'manual') => ({
    id: newId('suppression', at),
    account_id: accountId,
    address,
    address_key: address,
    reason,
    email_id: reason === 'manual' ? null : emailId,
    created_at: at,
  })
  await db
    .insertInto('suppressions')
    .values([
      ...to.map((address) => entry(address, 'hard_bounce')),
      entry('complained@example.org', 'complaint'),
      entry('left@example.org', 'unsubscribe'),
      entry('manual@example.org', 'manual'),
    ])
    .execute()
  await migrateToLatest(db)

  const { data } = await createSuppressionService({ clock: systemClock }).list(db, accountId, { limit: 10 })
  expect(Object.fromEntries(data.map(({ address, source }) => [address, source]))).toEqual({
    'taken@example.org': 'notification',
    'refused@example.org': 'smtp_answer',
    'complained@example.org': 'feedback_report',
    'left@example.org': 'unsubscribe_link',
    'manual@example.org': 'api',
  })
  expect(data.map(({ unsubscribedAt }) => unsubscribedAt)).toContain(at.toISOString())
})
