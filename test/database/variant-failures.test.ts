import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'

test('variants of campaigns that are being sent during an upgrade count as rendered for somebody', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await resetToBefore(db, '0044')
  const at = new Date('2026-03-01T09:30:00.000Z')
  const accountId = await seedAccount(db, at)
  const abTest = JSON.stringify({
    share: 50,
    winnerBy: 'manual',
    hours: null,
    variants: [{ name: 'A' }, { name: 'B' }],
  })
  const insert = (name: string, status: string, test: string | null) =>
    sql`
      INSERT INTO campaigns (account_id, id, mode, status, name, audience_id, sender, reply_to, subject, track_opens,
        track_clicks, tags, metadata, late_start, ab_test, created_at, updated_at)
      VALUES (${accountId}, ${newId('campaign', at)}, 'live', ${status}, ${name}, ${newId('audience', at)}, 'a@example.com',
        '{}', 'Spring', false, false, '{}', '{}', 'send', ${test}::json, ${at}, ${at})
    `.execute(db)
  await insert('sent now', 'sending', abTest)
  await insert('paused', 'paused', abTest)
  await insert('to be sent', 'draft', abTest)
  await insert('without a test', 'sending', null)
  await migrateToLatest(db)

  const rows = await db.selectFrom('campaigns').select(['name', 'ab_failed']).execute()
  expect(Object.fromEntries(rows.map(({ name, ab_failed: failed }) => [name, failed]))).toEqual({
    'sent now': [null, null],
    paused: [null, null],
    'to be sent': null,
    'without a test': null,
  })
})
