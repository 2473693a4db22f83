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
  await resetToBefore(database.db, '0049')
})
afterAll(() => database.drop())

test('emails from before the table of tags are found by tag, before and after they are added to it', async () => {
  const { db } = database
  const at = new Date('2026-03-01T09:30:00.000Z')
  const accountId = await seedAccount(db, at)
  const seed = (tags: string[]) => seedEmail(db, { accountId, at, to: ['ada@example.org'], tags })
  const [first, other, second] = [await seed(['welcome']), await seed(['other']), await seed(['welcome', 'other'])]
  const deleted = await seed(['welcome'])
  await seed([])
  await migrateToLatest(db)
  // As a process of an older version does: the triggers write the tags.
  const late = await seed(['welcome'])
  await db.deleteFrom('emails').where('id', '=', deleted).execute()

  const byTag = async (tag: string) =>
    (await listEmails(db, live(accountId), { limit: 10, tag })).data.map(({ id }) => id)
  const rows = () =>
    db.selectFrom('email_tags').select(['tag', 'email_id']).orderBy('email_id').orderBy('tag').execute()
  expect(await byTag('welcome')).toEqual([late, second, first])
  expect(await rows()).toEqual([{ tag: 'welcome', email_id: late }])

  await Promise.all([indexOlderEmails(db), indexOlderEmails(db)])
  expect(await rows()).toEqual([
    { tag: 'welcome', email_id: first },
    { tag: 'other', email_id: other },
    { tag: 'other', email_id: second },
    { tag: 'welcome', email_id: second },
    { tag: 'welcome', email_id: late },
  ])
  expect(await byTag('welcome')).toEqual([late, second, first])
  expect(await byTag('none')).toEqual([])
  expect(await indexOlderEmails(db)).toBe(0)
})
