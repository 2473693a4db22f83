import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase
const accountId = newId('account', new Date())
const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

async function counts() {
  const events = await database.db.selectFrom('events').select('id').execute()
  const outbox = await database.db.selectFrom('outbox_rows').select('event_id').execute()
  return [events.length, outbox.length]
}

test('appending to the outbox leaves neither event nor wake-up when the transaction rolls back', async () => {
  let woken = 0
  const outbox = createOutbox({ clock: systemClock, wake: () => void woken++ })
  const work = inTransaction(database.db, async (trx) => {
    await outbox.append(trx, live(accountId), [{ type: 'contact.deleted', data }])
    throw new Error('second thoughts')
  })
  await expect(work).rejects.toThrow('second thoughts')
  expect(await counts()).toEqual([0, 0])
  expect(woken).toBe(0)
})

test('appending to the outbox refuses data that has not the published shape, and undoes the transaction', async () => {
  const outbox = createOutbox({ clock: systemClock, wake: () => {} })
  const wrong = { ...data, subscriberId: 'nobody' }
  await expect(
    inTransaction(database.db, (trx) =>
      outbox.append(trx, live(accountId), [{ type: 'contact.deleted', data: wrong }]),
    ),
  ).rejects.toThrow(/subscriberId/)
  expect(await counts()).toEqual([0, 0])
})

test('appending to the outbox writes events in order, each with a body that is never made again', async () => {
  let woken = 0
  const outbox = createOutbox({ clock: systemClock, wake: () => void woken++ })
  const ids = await inTransaction(database.db, (trx) =>
    outbox.append(trx, live(accountId), [
      { type: 'contact.deleted', data },
      { type: 'contact.created', data: { ...data, email: 'ada@example.com', status: 'active' } },
    ]),
  )
  const rows = await database.db.selectFrom('events').selectAll().orderBy('id').execute()
  expect(rows.map((row) => row.id)).toEqual(ids)
  expect(rows.map((row) => row.type)).toEqual(['contact.deleted', 'contact.created'])
  expect(JSON.parse(rows[0]?.body ?? '')).toEqual({
    id: ids[0],
    type: 'contact.deleted',
    created: rows[0]?.created_at.toISOString(),
    data,
  })
  expect(woken).toBe(1)
})
