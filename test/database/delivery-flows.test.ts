import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type Handle, inTransaction } from '../../server/database/connection.ts'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { firstFlow, noFlow } from '../../server/queue/flow-jobs.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { resetToBefore } from '../support/older-schema.ts'

let database: TestDatabase
let accountId: string
let otherId: string
/** Of before the migration. */
let before: string[]

const at = new Date('2026-03-01T09:30:00.000Z')

beforeAll(async () => {
  database = await createTestDatabase()
  await resetToBefore(database.db, '0011-delivery-flows')
  accountId = await seedAccount(database.db, at)
  otherId = await seedAccount(database.db, at)
  before = [
    await addWebhook(accountId, 'https://example.com/a'),
    await addWebhook(accountId, 'https://example.com/a'),
    await addWebhook(otherId, 'https://example.com/a'),
  ]
  await migrateToLatest(database.db)
})
afterAll(() => database.drop())

/** As every version does. */
async function addWebhook(account: string, url: string, db: Handle = database.db): Promise<string> {
  const id = newId('webhook', at)
  await sql`
    INSERT INTO webhooks (id, account_id, url, events, secret) VALUES (${id}, ${account}, ${url}, '{email.sent}', 'x')
  `.execute(db)
  return id
}

async function flowOf(id: string): Promise<number> {
  const row = await database.db.selectFrom('webhooks').select('flow').where('id', '=', id).executeTakeFirstOrThrow()
  return row.flow
}

test('webhooks of an account with the same URL share a flow, others do not, and old ones have theirs', async () => {
  const [first, copy, ofOther] = await Promise.all(before.map(flowOf))
  expect(copy).toBe(first)
  expect(ofOther).not.toBe(first)
  expect(await flowOf(await addWebhook(accountId, 'https://example.com/a'))).toBe(first)
  expect(await flowOf(await addWebhook(accountId, 'https://example.com/b'))).not.toBe(first)
  expect(first).toBeGreaterThanOrEqual(firstFlow)
})

test('a webhook that is moved has the flow of its new URL, and that of the old one again when it goes back', async () => {
  const id = await addWebhook(accountId, 'https://example.com/moving')
  const flow = await flowOf(id)
  const move = (url: string) => sql`UPDATE webhooks SET url = ${url} WHERE id = ${id}`.execute(database.db)
  await move('https://example.com/moved')
  expect(await flowOf(id)).not.toBe(flow)
  await move('https://example.com/moving')
  expect(await flowOf(id)).toBe(flow)
})

test('webhooks made at once for one URL share a flow, and nobody fails', async () => {
  const { connectionString } = database
  await using pool = Object.assign(connect({ connectionString, max: 20, onError: () => undefined }), {
    [Symbol.asyncDispose]: () => pool.destroy(),
  })
  const ids = await Promise.all(
    Array.from({ length: 20 }, () => addWebhook(accountId, 'https://example.com/at-once', pool)),
  )
  expect(new Set(await Promise.all(ids.map(flowOf))).size).toBe(1)
})

async function startOwnQueue(): Promise<Queue & AsyncDisposable> {
  const queue = await startQueue({
    connectionString: database.connectionString,
    works: false,
    onError(error) {
      throw error
    },
  })
  return { ...queue, [Symbol.asyncDispose]: () => queue.stop() }
}

async function flowsLeft(): Promise<number[]> {
  const rows = await database.db.selectFrom('delivery_flows').select('number').execute()
  return rows.map(({ number }) => number)
}

test('a flow goes when no webhook has it and nothing waits in it', async () => {
  const { db } = database
  await using queue = await startOwnQueue()
  const ids = await Promise.all(
    ['used', 'busy', 'idle'].map((name) => addWebhook(accountId, `https://example.com/${name}`)),
  )
  const [used = 0, busy = 0, idle = 0] = await Promise.all(ids.map(flowOf))
  await sql`DELETE FROM webhooks WHERE id = ANY(${ids.slice(1)}::text[])`.execute(db)
  const job = { deliveryId: newId('delivery', at), flow: busy, dueAt: new Date('2126-01-01T00:00:00.000Z') }
  await inTransaction(db, (trx) => queue.flows.put(trx, [job]))
  while ((await queue.flows.deleteUnused(db, 1)) > 0);
  const left = await flowsLeft()
  expect(left).toContain(used)
  expect(left).toContain(busy)
  expect(left).not.toContain(idle)
})

test('a flow stays for a webhook that is about to be committed', async () => {
  const { db } = database
  await using queue = await startOwnQueue()
  const url = 'https://example.com/about-to-be'
  const before = await addWebhook(accountId, url)
  const flow = await flowOf(before)
  const trx = await db.startTransaction().execute()
  await addWebhook(accountId, url, trx)
  await sql`DELETE FROM webhooks WHERE id = ${before}`.execute(db)
  await queue.flows.deleteUnused(db, 1_000)
  await trx.commit().execute()
  expect(await flowsLeft()).toContain(flow)
})

test('a webhook that is made while its flow goes has another one', async () => {
  const { db } = database
  const url = 'https://example.com/going'
  const before = await addWebhook(accountId, url)
  const flow = await flowOf(before)
  await sql`DELETE FROM webhooks WHERE id = ${before}`.execute(db)
  const trx = await db.startTransaction().execute()
  await sql`DELETE FROM delivery_flows WHERE number = ${flow}`.execute(trx)
  const adding = addWebhook(accountId, url)
  await untilSomebodyWaits(db)
  await trx.commit().execute()
  const other = await flowOf(await adding)
  expect(other).not.toBe(flow)
  expect(await flowsLeft()).toContain(other)
})

test.each([
  ['https://Example.COM/path?a@b', 'example.com'],
  ['http://user:p%40ss@127.0.0.1:8080/', '127.0.0.1'],
  ['https://[2001:db8::1]:8443/hook', '[2001:db8::1]'],
  ['https://example.com', 'example.com'],
  ['not a URL', ''],
])('the host of %s is %s', async (url, host) => {
  const id = await addWebhook(accountId, url)
  const row = await database.db
    .selectFrom('delivery_flows')
    .select('host')
    .where('number', '=', await flowOf(id))
    .executeTakeFirst()
  expect(row).toEqual({ host })
})

test('numbers come round, pass over those that are taken, and none is the one of no flow', async () => {
  const { db } = database
  await sql`ALTER SEQUENCE delivery_flows_number_seq RESTART WITH ${sql.lit(noFlow - 1)}`.execute(db)
  expect(await flowOf(await addWebhook(accountId, 'https://example.com/last'))).toBe(noFlow - 1)
  const next = await flowOf(await addWebhook(accountId, 'https://example.com/round'))
  expect(next).toBeGreaterThanOrEqual(firstFlow)
  expect(next).toBeLessThan(firstFlow + 100)
})
