import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../server/lib/clock.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createCaptureStore } from '../../server/stored-messages/capture-store.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'

const tokens = createMailTokens(Buffer.alloc(32, 7))

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('the store of captured messages keeps the newest of each account, and leaves the others alone', async () => {
  const { db } = database
  const at = new Date()
  const [busy, quiet] = [await seedAccount(db, at), await seedAccount(db, at)]
  const busyEmail = await seedEmail(db, { accountId: busy, at, to: ['ada@example.org'] })
  const quietEmail = await seedEmail(db, { accountId: quiet, at, to: ['ada@example.org'] })
  const errors: unknown[] = []
  const store = createCaptureStore({
    db,
    clock: systemClock,
    readReturnPath: (address) => tokens.readReturnPath(address)?.emailId ?? null,
    keep: 5,
    onError: (error) => errors.push(error),
  })
  const add = (emailId: string, text: string) =>
    store.add({
      mailFrom: tokens.returnPath({ emailId, position: null }, 'send.example.com'),
      recipients: ['a@example.org'],
      content: Buffer.from(text),
    })

  await add(quietEmail, 'quiet')
  for (let number = 1; number <= 250; number++) await add(busyEmail, String(number))

  const kept = async () => {
    const rows = await db.selectFrom('captured_messages').select(['account_id', 'content']).orderBy('id').execute()
    return rows.map((row) => `${row.account_id === busy ? 'busy' : 'quiet'} ${row.content.toString()}`)
  }
  await expect.poll(async () => (await kept()).length).toBeLessThan(200)
  const rest = await kept()
  expect(rest[0]).toBe('quiet quiet')
  expect(rest.slice(-5)).toEqual(['busy 246', 'busy 247', 'busy 248', 'busy 249', 'busy 250'])
  expect(errors).toEqual([])
  await store.close()
})
