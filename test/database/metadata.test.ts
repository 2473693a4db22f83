import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { pairsOf } from '../../server/emails/metadata.ts'
import { selectEmails } from '../../server/emails/queries.ts'
import { newId } from '../../server/shared/ids.ts'
import { selectWebhooks } from '../../server/webhooks/queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await resetToBefore(database.db, '0008-metadata')
})
afterAll(() => database.drop())

test('emails and webhooks from before there was metadata have none, and what an older process adds has none', async () => {
  const { db } = database
  const at = new Date('2026-03-01T09:30:00.000Z')
  const accountId = await seedAccount(db, at)
  const addEmail = () => seedEmail(db, { accountId, at, to: ['ada@example.org'] })
  const addWebhook = async () => {
    const id = newId('webhook', at)
    await sql`
      INSERT INTO webhooks (id, account_id, url, events, secret)
      VALUES (${id}, ${accountId}, 'https://example.com/', '{email.sent}', '')
    `.execute(db)
    return id
  }
  const emails = [await addEmail()]
  const webhooks = [await addWebhook()]
  await migrateToLatest(db)
  emails.push(await addEmail())
  webhooks.push(await addWebhook())

  const page = { before: undefined, limit: 10 }
  const listEmails = (metadata?: Record<string, string>) =>
    selectEmails(db, live(accountId), { ...page, recipientKey: undefined, query: { limit: 10, metadata } })
  expect((await listEmails()).map(({ id, metadata }) => [id, metadata])).toEqual(
    emails.toReversed().map((id) => [id, {}]),
  )
  const listWebhooks = (metadata?: Record<string, string>) =>
    selectWebhooks(db, live(accountId), { ...page, ...(metadata && { metadata }) })
  expect((await listWebhooks()).map(({ id, metadata }) => [id, metadata])).toEqual(
    webhooks.toReversed().map((id) => [id, {}]),
  )

  // Metadata that is added to an older row is found like that of any other row.
  const [pair = ''] = pairsOf({ customer: '42' })
  const [email = '', webhook = ''] = [emails[0], webhooks[0]]
  await db.insertInto('email_metadata').values({ account_id: accountId, pair, email_id: email }).execute()
  await db.updateTable('webhooks').set({ metadata: '{"customer":"42"}' }).where('id', '=', webhook).execute()
  expect((await listEmails({ customer: '42' })).map(({ id }) => id)).toEqual([email])
  expect((await listWebhooks({ customer: '42' })).map(({ id }) => id)).toEqual([webhook])
})
