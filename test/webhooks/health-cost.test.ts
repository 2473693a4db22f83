import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countedPending } from '../../contract/webhooks.ts'
import type { Handle } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { findWebhookWithHealth } from '../../server/webhooks/queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { rowsRead } from '../support/rows-read.ts'
import { live } from '../support/scope.ts'

/* A webhook is read with its health by one statement. */

const accountId = newId('account', new Date())
const id = newId('webhook', new Date())

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  const { db } = database
  await sql`INSERT INTO accounts (id, name, plan) VALUES (${accountId}, 'A', 'free')`.execute(db)
  await sql`
    INSERT INTO webhooks (id, account_id, url, events, secret)
    VALUES (${id}, ${accountId}, 'https://example.com', '{email.sent}', 'x')
  `.execute(db)
  // The statistics say that an average webhook has fewer than are counted, which are quickly sorted.
  await sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, status, created_at)
    SELECT 'dlv_' || lpad(n::text, 6, '0'), ${accountId}, CASE WHEN n % 2 = 0 THEN ${id} ELSE 'wh_' || n % 100 END,
      'evt', 'email.sent', 'pending', now()
    FROM generate_series(1, 10000) n
  `.execute(db)
  await sql`ANALYZE`.execute(db)
})
afterAll(() => database.drop())

function find(handle: Handle): Promise<unknown> {
  return findWebhookWithHealth(handle, live(accountId), id)
}

test('the health of a webhook is read from as many deliveries as are counted', async () => {
  const read = await rowsRead(database.db, async (handle) => {
    // From the sixth time on, the plan is one for all webhooks.
    for (let time = 0; time < 10; time++) expect(await find(handle)).toMatchObject({ pending: countedPending })
  })
  expect(read).toBeLessThan(10 * (countedPending + 10))
})

test('a webhook is read by the same statement after its table has got another column', async () => {
  await database.db.transaction().execute(async (trx) => {
    const before = await find(trx)
    await sql`ALTER TABLE webhooks ADD COLUMN later text`.execute(trx)
    expect(await find(trx)).toEqual(before)
  })
})
