import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Mode } from '../../contract/mode.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { outboxHasRoom } from '../../server/outbox/room.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
const accountAt = (second: number) => newId('account', new Date(second * 1_000))
const [before, ours, behind] = [accountAt(1), accountAt(2), accountAt(3)]
const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

async function append(accountId: string, count: number, mode: Mode = 'live'): Promise<string[]> {
  const outbox = createOutbox({ clock: systemClock, wake: () => {} })
  const events = Array.from({ length: count }, () => ({ type: 'contact.deleted' as const, data }))
  return inTransaction(database.db, (trx) => outbox.append(trx, { accountId, mode }, events))
}

test('the outbox has room for an account until 4,000 of its events wait, however many of others do', async () => {
  await append(before, 4_000)
  await append(behind, 4_000)
  const [first] = await append(ours, 2_000, 'test')
  await append(ours, 2_000)
  const rooms = () => Promise.all([ours, before, behind].map((account) => outboxHasRoom(database.db, account)))
  expect(await rooms()).toEqual([false, false, false])

  // Its deliveries are under way already.
  const lease = '00000000-0000-4000-8000-000000000000'
  await database.db.updateTable('outbox_rows').set({ lease }).where('event_id', '=', String(first)).execute()
  expect(await rooms()).toEqual([true, false, false])
})
