import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { markWaiting } from '../../server/email-delivery/sending-queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'

/* The time of a look at a recipient whose domain has no usable server, and what of the 72 hours it leaves out. */

const now = new Date('2026-03-04T09:30:00.000Z')
const before = (seconds: number) => new Date(now.getTime() - seconds * 1_000)
const nextAt = before(-60)
const firstAt = before(2 * 86_400)
const delayedAt = before(86_400)

let database: TestDatabase
let accountId: string

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, now)
})
afterAll(() => database.drop())

test.each([
  ['without a time', null, nextAt, 0],
  ['that is not due', before(-30), before(-30), 0],
  ['a little late', before(299), before(299), 0],
  ['minutes late, since many wait', before(14 * 60), nextAt, 0],
  ['so late that nothing was looked at', before(15 * 60 + 1), nextAt, 15 * 60 + 1],
  ['days late', before(73 * 3_600), nextAt, 73 * 3_600],
] as const)('a look %s notes its time and leaves out what it should', async (_, noted, expected, leftOut) => {
  const { db } = database
  const emailId = await seedEmail(db, { accountId, at: firstAt, to: ['ada@example.org'] })
  await db
    .updateTable('email_recipients')
    .set({ status: 'deferred', next_attempt_at: noted, first_attempt_at: firstAt, delayed_at: delayedAt })
    .where('email_id', '=', emailId)
    .execute()
  await inTransaction(db, (trx) => markWaiting(trx, [{ emailId, position: 0, nextAt }], now))
  const moved = (at: Date) => new Date(at.getTime() + leftOut * 1_000)
  expect(
    await db
      .selectFrom('email_recipients')
      .select(['next_attempt_at', 'first_attempt_at', 'delayed_at'])
      .where('email_id', '=', emailId)
      .executeTakeFirst(),
  ).toEqual({ next_attempt_at: expected, first_attempt_at: moved(firstAt), delayed_at: moved(delayedAt) })
})
