import { afterAll, beforeAll, expect, test } from 'vitest'
import { deleteOldMessages } from '../../server/stored-messages/retention.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { insertCapturedMessage, insertInboundMessage } from '../support/stored-messages.ts'

let database: TestDatabase
let accountId: string

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, new Date())
})
afterAll(() => database.drop())

test.each([
  ['captured_messages', insertCapturedMessage],
  ['inbound_messages', insertInboundMessage],
] as const)('old %s are deleted, and no younger ones', async (table, insert) => {
  const { db } = database
  const id = await insert(database, { accountId })
  const ids = async () => (await db.selectFrom(table).select('id').execute()).map((row) => row.id)
  await deleteOldMessages(db, new Date(Date.now() - 60_000))
  expect(await ids()).toEqual([id])
  await deleteOldMessages(db, new Date(Date.now() + 60_000))
  expect(await ids()).toEqual([])
})
