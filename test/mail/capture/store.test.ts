import { afterAll, beforeAll, expect, test } from 'vitest'
import { createApiKeyService } from '../../../server/api-keys/service.ts'
import { systemClock } from '../../../server/clock.ts'
import { createCaptureStore } from '../../../server/mail/capture/store.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { insertEmail, readReturnPath, returnPathOf } from './world.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('keeps the newest of each account, and leaves the others alone', async () => {
  const { db } = database
  const accounts = createApiKeyService({ clock: systemClock })
  const [busy, quiet] = await Promise.all(
    ['busy', 'quiet'].map((name) => accounts.createAccount(db, { name, plan: 'x' })),
  )
  const [busyEmail, quietEmail] = await Promise.all([busy, quiet].map((account) => insertEmail(db, account?.id ?? '')))
  const errors: unknown[] = []
  const store = createCaptureStore({
    db,
    clock: systemClock,
    readReturnPath,
    keep: 5,
    onError: (error) => errors.push(error),
  })
  const add = (emailId: string | undefined, text: string) =>
    store.add({ mailFrom: returnPathOf(emailId ?? ''), recipients: ['a@example.org'], content: Buffer.from(text) })

  await add(quietEmail, 'quiet')
  for (let number = 1; number <= 250; number++) await add(busyEmail, String(number))

  const kept = async () => {
    const rows = await db.selectFrom('captured_messages').select(['account_id', 'content']).orderBy('id').execute()
    return rows.map((row) => `${row.account_id === busy?.id ? 'busy' : 'quiet'} ${row.content.toString()}`)
  }
  await expect.poll(async () => (await kept()).length).toBeLessThan(200)
  const rest = await kept()
  expect(rest[0]).toBe('quiet quiet')
  expect(rest.slice(-5)).toEqual(['busy 246', 'busy 247', 'busy 248', 'busy 249', 'busy 250'])
  expect(errors).toEqual([])
  await store.close()
})
