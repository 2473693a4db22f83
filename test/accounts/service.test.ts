import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleId, idPattern } from '../../contract/ids.ts'
import { createAccountService } from '../../server/accounts/service.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const service = createAccountService({ clock: { now: () => new Date('2026-01-01T12:00:00.123Z') } })
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('an account has an id, a name and a plan', async () => {
  const { db } = database
  const account = await service.create(db, { name: 'Acme', plan: 'pro' })
  expect(account).toEqual({
    id: expect.stringMatching(idPattern('account')),
    name: 'Acme',
    plan: 'pro',
    createdAt: '2026-01-01T12:00:00.123Z',
  })
  expect(await service.list(db)).toEqual([account])
  await service.assertExists(db, account.id)
  // There is one, so this is not the first start.
  expect(await inTransaction(db, (trx) => service.createFirst(trx, { plan: 'pro' }))).toBeNull()
})

test('an account that does not exist is named in the error', async () => {
  const id = exampleId('account')
  const message = expect.stringContaining(id)
  await expect(service.assertExists(database.db, id)).rejects.toMatchObject({ code: 'not_found', message })
})
