import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { listEmails } from '../../server/emails/listing.ts'
import { indexOlderEmails } from '../../server/emails/older-emails.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await resetToBefore(database.db, '0016')
})
afterAll(() => database.drop())

test('emails from before the search are found by recipient at once, and by subject when they are added', async () => {
  const { db } = database
  const at = new Date('2026-03-01T09:30:00.000Z')
  const accountId = await seedAccount(db, at)
  const seed = (subject: string) => seedEmail(db, { accountId, at, to: ['ada@example.org'], subject })
  const older = [await seed('Your order #1'), await seed('Your order #2'), await seed('\u200b')]
  await migrateToLatest(db)
  const search = async (text: string) =>
    (await listEmails(db, live(accountId), { limit: 10, search: text })).data.map(({ id }) => id)
  expect(await search('ada@')).toEqual(older.toReversed())
  expect(await search('your')).toEqual([])

  await Promise.all([indexOlderEmails(db), indexOlderEmails(db)])
  expect(await search('your')).toEqual([older[1], older[0]])
  expect(await indexOlderEmails(db)).toBe(0)
})
