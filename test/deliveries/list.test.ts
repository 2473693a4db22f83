import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DeliveryListQuery } from '../../contract/deliveries.ts'
import { type Db, inTransaction, type Trx } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { live } from '../support/scope.ts'

let engine: Engine
let webhookId: string

const statuses = ['succeeded', 'failed', 'canceled', 'pending'] as const
const types = ['contact.deleted', 'contact.created'] as const
const count = 24

/** When the one of this index was created: one a minute. */
function createdAt(index: number): Date {
  return new Date(Date.UTC(2026, 3, 1, 0, index))
}

beforeAll(async () => {
  engine = await startEngine()
  webhookId = await engine.addWebhook('http://127.0.0.1:9/', [])
  const otherId = await engine.addWebhook('http://127.0.0.1:9/', [])
  for (let index = 0; index < count; index++) {
    for (const webhook_id of [webhookId, otherId]) {
      const status = statuses[index % statuses.length] ?? 'failed'
      await engine.db
        .insertInto('deliveries')
        .values({
          id: newId('delivery', createdAt(index)),
          account_id: engine.accountId,
          webhook_id,
          event_id: newId('event', createdAt(index)),
          event_type: types[index % types.length] ?? 'contact.deleted',
          status,
          attempt_count: index,
          created_at: createdAt(index),
          completed_at: status === 'pending' ? null : createdAt(index),
          next_attempt_at: null,
        })
        .execute()
    }
  }
})
afterAll(() => engine.stop())

/** The indexes of what a query finds, through all its pages. */
async function find(query: Partial<DeliveryListQuery>): Promise<number[]> {
  const found: number[] = []
  let cursor: string | null | undefined
  do {
    const page = await engine.deliveries.list(engine.db, live(engine.accountId), webhookId, {
      limit: 5,
      ...query,
      ...(cursor && { cursor }),
    })
    found.push(...page.data.map((delivery) => delivery.attemptCount))
    cursor = page.nextCursor
  } while (cursor !== null)
  return found
}

const all = Array.from({ length: count }, (_, index) => count - 1 - index)

test('the deliveries of a webhook are listed newest first, each once, over the pages', async () => {
  expect(await find({})).toEqual(all)
})

test.each(statuses)('the deliveries of a webhook are found by their status: %s', async (status) => {
  expect(await find({ status })).toEqual(all.filter((index) => statuses[index % statuses.length] === status))
})

test('the deliveries of a webhook are found by the type of their event', async () => {
  expect(await find({ eventType: 'contact.created' })).toEqual(all.filter((index) => index % 2 === 1))
})

test('the deliveries of a webhook are found by the time of their creation: since one, the other excluded', async () => {
  const since = createdAt(5).toISOString()
  const until = createdAt(17).toISOString()
  expect(await find({ since, until })).toEqual(all.filter((index) => index >= 5 && index < 17))
  expect(await find({ until })).toEqual(all.filter((index) => index < 17))
  expect(await find({ since, status: 'failed' })).toEqual(all.filter((index) => index >= 5 && index % 4 === 1))
})

test('the deliveries of a webhook are found by their creation also when the clock was set back, and their ids are ahead of it', async () => {
  // The id is later than all before it, though it was made of an earlier time.
  newId('delivery', createdAt(count + 50))
  const id = newId('delivery', createdAt(count))
  await engine.db
    .insertInto('deliveries')
    .values({
      id,
      account_id: engine.accountId,
      webhook_id: webhookId,
      event_id: newId('event', createdAt(count)),
      event_type: 'contact.deleted',
      status: 'failed',
      attempt_count: count,
      created_at: createdAt(count),
      completed_at: createdAt(count),
      next_attempt_at: null,
    })
    .execute()
  const since = createdAt(count).toISOString()
  const until = createdAt(count + 1).toISOString()
  expect(await find({ since, until })).toEqual([count])
})

test('the deliveries of a webhook of a type that few have are looked for 10,000 at a time, and each is found once', async () => {
  const manyId = await engine.addWebhook('http://127.0.0.1:9/', [])
  await insertMany(engine.db, manyId, 10_020)
  const list = (query: Partial<DeliveryListQuery>) =>
    engine.deliveries.list(engine.db, live(engine.accountId), manyId, { limit: 5, ...query })
  for (const query of [{ eventType: 'domain.deleted' }, { status: 'succeeded' }] as const) {
    const first = await list(query)
    expect(first.data).toEqual([])
    const second = await list({ ...query, cursor: first.nextCursor ?? 'none' })
    expect(second.data.map((delivery) => delivery.attemptCount)).toEqual([3, 2, 1])
    expect(second.nextCursor).toBeNull()
  }
  // A full page continues after its last row, and one that ends with the 10,000th after that.
  expect((await list({ eventType: 'contact.created' })).data.map(({ attemptCount }) => attemptCount)).toEqual([
    10_020, 10_019, 10_018, 10_017, 10_016,
  ])
})

test('the deliveries of a webhook are read from one index until the page is full, with a filter too', async () => {
  const manyId = await engine.addWebhook('http://127.0.0.1:9/', [])
  await insertMany(engine.db, manyId, 2_000)
  await sql`ANALYZE deliveries`.execute(engine.db)
  for (const query of [{}, { eventType: 'contact.created' }, { status: 'failed' }] as const) {
    const read = await inTransaction(engine.db, async (trx) => {
      const before = await rowsRead(trx)
      await engine.deliveries.list(trx, live(engine.accountId), manyId, { limit: 5, ...query })
      return (await rowsRead(trx)) - before
    })
    expect(read).toBeLessThan(50)
  }
})

/** Inserts failed deliveries numbered from 1. The first three succeeded, with another type. */
async function insertMany(db: Db, webhookId: string, count: number): Promise<void> {
  await sql`
    INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, status, attempt_count, created_at, completed_at)
    SELECT 'dlv_0' || right(${webhookId}, 6) || lpad(n::text, 19, '0'), ${engine.accountId}, ${webhookId},
      'evt_' || lpad(n::text, 26, '0'), CASE WHEN n <= 3 THEN 'domain.deleted' ELSE 'contact.created' END,
      CASE WHEN n <= 3 THEN 'succeeded' ELSE 'failed' END, n, now(), now()
    FROM generate_series(1, ${count}::integer) n
  `.execute(db)
}

/** Returns the deliveries that a session has read, since its statistics were last reported. */
async function rowsRead(trx: Trx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT (seq_tup_read + idx_tup_fetch)::float8 AS count FROM pg_stat_xact_user_tables WHERE relname = 'deliveries'
  `.execute(trx)
  return rows[0]?.count ?? 0
}
