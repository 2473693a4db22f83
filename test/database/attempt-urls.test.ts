import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await resetToBefore(database.db, '0048-attempt-urls')
})
afterAll(() => database.drop())

test('the migration keeps the URL that a webhook has, with its version, until the account is deleted', async () => {
  const { db } = database
  const at = new Date('2026-03-01T09:30:00.000Z')
  const accountId = await seedAccount(db, at)
  const id = newId('webhook', at)
  await sql`
    INSERT INTO webhooks (id, account_id, url, events, secret)
    VALUES (${id}, ${accountId}, 'https://example.com/', '{email.sent}', 'old')
  `.execute(db)
  const change = (set: string) => sql`UPDATE webhooks SET ${sql.raw(set)} WHERE id = ${id}`.execute(db)
  await change(`url = 'https://example.org/'`)
  await migrateToLatest(db)
  await change(`secret = 'new'`)
  await change('url = url')
  await change(`url = 'https://example.net/'`)
  const urls = () => db.selectFrom('webhook_urls').selectAll().orderBy('version').execute()
  expect(await urls()).toEqual([
    { webhook_id: id, version: 2, url: 'https://example.org/' },
    { webhook_id: id, version: 4, url: 'https://example.net/' },
  ])
  await db.deleteFrom('accounts').where('id', '=', accountId).execute()
  expect(await urls()).toEqual([])
})
