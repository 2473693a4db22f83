import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createRetention } from '../../server/background/retention.ts'
import { connect, type Db, inTransaction } from '../../server/database/connection.ts'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { createEventService } from '../../server/events/service.ts'
import { findPlace, givePositions, lastPositionBefore } from '../../server/outbox/positions.ts'
import { firstIdAt, newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { resetToBefore } from '../support/older-schema.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase
let db: Db
let account: string
const events = createEventService()

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
})
afterAll(() => database.drop())
beforeEach(() => {
  account = newId('account', new Date())
})

const day = 24 * 3_600_000

/** Events in the outbox, as every version of the service writes them. */
async function append(handle: Db, ids: readonly string[], accountId = account, at = new Date()): Promise<void> {
  await sql`
    WITH event AS (
      INSERT INTO events (id, account_id, type, body, created_at)
      SELECT id, ${accountId}, 'subscriber.added', json_build_object('id', id)::text, ${at} FROM unnest(${ids}::text[]) id
      RETURNING id, account_id, type
    )
    INSERT INTO outbox (event_id, account_id, type) SELECT id, account_id, type FROM event
  `.execute(handle)
}

async function leaveOutbox(handle: Db, ids: readonly string[]): Promise<void> {
  await sql`DELETE FROM outbox WHERE event_id = ANY(${ids}::text[])`.execute(handle)
}

const newIds = (count: number) => Array.from({ length: count }, () => newId('event', new Date()))

async function poll(handle: Db, after?: string, { limit = 100, accountId = account } = {}): Promise<string[]> {
  const { data } = await events.list(handle, live(accountId), { limit, order: 'asc', after })
  return data.map(({ id }) => String(id))
}

async function positionsOf(handle: Db, accountId = account): Promise<string[]> {
  const rows = await handle
    .selectFrom('event_positions')
    .select('event_id')
    .where('account_id', '=', accountId)
    .orderBy('position')
    .execute()
  return rows.map(({ event_id }) => event_id)
}

test('positions are given to each event once, by fan-outs of many accounts and pollers at once', async () => {
  const accounts = Array.from({ length: 5 }, () => newId('account', new Date()))
  const all = new Map<string, string[]>()
  for (const accountId of accounts) {
    all.set(accountId, newIds(60))
    await append(db, all.get(accountId) ?? [], accountId)
  }
  // Each takes some of every account, in another order.
  const fanOuts = [0, 1, 2].map(async (index) => {
    for (let from = index * 20; from < (index + 1) * 20; from += 5) {
      const ids = [...all.values()].flatMap((ofOne) => ofOne.slice(from, from + 5))
      await leaveOutbox(db, index % 2 === 0 ? ids : ids.toReversed())
    }
  })
  const pollers = accounts.map(async (accountId) => {
    for (let time = 0; time < 5; time++) await givePositions(db, accountId)
  })
  await Promise.all([...fanOuts, ...pollers])
  for (const [accountId, ids] of all) {
    expect((await positionsOf(db, accountId)).toSorted()).toEqual(ids)
  }
})

test('positions are given to all of a long backlog, also beside a fan-out that has its first thousand in hand', async () => {
  const ids = newIds(2_500)
  await append(db, ids)
  await inTransaction(db, async (trx) => {
    await sql`SELECT FROM outbox WHERE account_id = ${account} ORDER BY event_id LIMIT 1000 FOR UPDATE`.execute(trx)
    const firstThousand = await givePositions(db, account)
    expect(firstThousand).toBe(ids[999])
    // Those in hand are in the way of nobody.
    expect(await givePositions(db, account, { above: firstThousand ?? '' })).toBe(ids[1_999])
    expect(await givePositions(db, account, { above: ids[1_999] ?? '' })).toBeNull()
  })
  expect(await positionsOf(db)).toEqual(ids)
  const { rows } = await sql`
      SELECT count(*)::int AS count FROM outbox WHERE account_id = ${account} AND NOT positioned
    `.execute(db)
  // The second thousand is passed over from now on.
  expect(rows).toEqual([{ count: 1_500 }])
})

test('positions are found for one account without a walk over the outbox of the others', async () => {
  const stranger = newId('account', new Date())
  await append(db, newIds(20_000), stranger)
  await append(db, newIds(1))
  await givePositions(db, account)
  const { rows } = await sql<{ 'QUERY PLAN': { Plan: Record<string, number> }[] }>`
      EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT give_positions_in_outbox(${account}, '', NULL)
    `.execute(db)
  const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 } = rows[0]?.['QUERY PLAN'][0]?.Plan ?? {}
  expect(hit + read).toBeLessThan(50)
  await sql`DELETE FROM outbox WHERE account_id = ${stranger}`.execute(db)
})

test('positions are waited for a second at most, where another session holds the counter', async () => {
  const [first = '', second = ''] = newIds(2)
  await append(db, [first, second])
  expect(await poll(db)).toEqual([first, second])
  const third = newId('event', new Date())
  await append(db, [third])
  await using holder = connect({ connectionString: database.connectionString, max: 1, onError: () => undefined })
  await inTransaction(holder, async (trx) => {
    await sql`SELECT FROM event_counters WHERE account_id = ${account} FOR UPDATE`.execute(trx)
    expect(await poll(db, first)).toEqual([second])
    await expect(findPlace(db, live(account), third)).rejects.toMatchObject({
      code: 'unavailable',
      retryAfterSeconds: 1,
    })
  })
  expect(await poll(db, first)).toEqual([second, third])
})

test('positions do not keep requests of one account waiting for the commits of others', async () => {
  const [polled = ''] = newIds(1)
  await append(db, [polled])
  await inTransaction(db, async (trx) => {
    await sql`SELECT FROM event_counters WHERE account_id = ${account} FOR UPDATE`.execute(trx)
    await append(db, newIds(1))
  })
  expect(await poll(db)).toHaveLength(2)
})

test('positions commit in order: the next is not given before the last is there', async () => {
  const [first = '', second = ''] = newIds(2)
  await append(db, [first, second])
  let later: Promise<void> | undefined
  await inTransaction(db, async (trx) => {
    // The one with the greater id is first.
    await sql`DELETE FROM outbox WHERE event_id = ${second}`.execute(trx)
    later = leaveOutbox(db, [first])
    await untilSomebodyWaits(db)
    expect(await positionsOf(db)).toEqual([])
  })
  await later
  expect(await positionsOf(db)).toEqual([second, first])
})

test('the filter since goes on from the first event of that time, whatever order they were positioned in', async () => {
  const start = Date.now() - 10 * day
  const at = (minute: number) => new Date(start + minute * 60_000)
  // Minutes in the order of the positions: some come late.
  const minutes = [0, 1, 5, 2, 6, 3, 9, 4, 8, 20, 7, 30, 10]
  const idOf = (minute: number) => firstIdAt('event', at(minute))
  for (const minute of minutes) {
    await append(db, [idOf(minute)], account, at(minute))
    await leaveOutbox(db, [idOf(minute)])
  }
  for (const since of [-1, 0, 3, 5, 6, 8, 11, 30, 31]) {
    const { data } = await events.list(db, live(account), {
      limit: 100,
      order: 'asc',
      since: at(since).toISOString(),
    })
    const expected = minutes.filter((minute) => minute >= since).map(idOf)
    expect(data.map(({ id }) => String(id))).toEqual(expected)
    const before = await lastPositionBefore(db, account, firstIdAt('event', at(since)))
    expect((await positionsOf(db)).slice(before).slice(0, 1)).toEqual(expected.slice(0, 1))
  }
})

test('retention deletes positions with their events, but for the last of an account', async () => {
  const old = new Date(Date.now() - 40 * day)
  const [first, second, last] = [0, 1, 2].map((ms) => firstIdAt('event', new Date(old.getTime() + ms)))
  const ids = [first, second, last].map(String)
  await append(db, ids, account, old)
  await leaveOutbox(db, ids)
  const expire = createRetention({ db, clock: { now: () => new Date() }, retentionMs: 30 * day })
  expect((await expire()).events).toBe(3)
  expect(await positionsOf(db)).toEqual([last])
  await expect(poll(db, first)).rejects.toMatchObject({ code: 'event_not_found' })
  // Nothing came after it, so its poller has missed nothing.
  expect(await poll(db, last)).toEqual([])
  const next = newId('event', new Date())
  await append(db, [next])
  expect(await poll(db, last)).toEqual([next])
  expect(await poll(db)).toEqual([next])
})

test('positions whose events are gone take no place of a page', async () => {
  const kept: string[] = []
  for (const age of [40, 39, 38]) {
    const old = new Date(Date.now() - age * day)
    const id = firstIdAt('event', old)
    await append(db, [id], account, old)
    await leaveOutbox(db, [id])
    await createRetention({ db, clock: { now: () => new Date() }, retentionMs: 30 * day })()
    kept.push(id)
  }
  const fresh = newIds(3)
  await append(db, fresh)
  await leaveOutbox(db, fresh)
  expect(await poll(db, kept[2], { limit: 1 })).toEqual([fresh[0]])
  for (const order of ['asc', 'desc'] as const) {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await events.list(db, live(account), { limit: 1, order, cursor })
      seen.push(...page.data.map(({ id }) => String(id)))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
    expect(seen).toEqual(order === 'asc' ? fresh : fresh.toReversed())
  }
})

test('the filter until finds an old event that left the outbox together with a new one', async () => {
  const [old, at] = [new Date(Date.now() - 3 * 3_600_000), new Date()]
  const [first, last] = [firstIdAt('event', old), newId('event', at)]
  await append(db, [first], account, old)
  await append(db, [last], account, at)
  await leaveOutbox(db, [first, last])
  const until = new Date(old.getTime() + 1_000).toISOString()
  for (const order of ['asc', 'desc'] as const) {
    const { data } = await events.list(db, live(account), { limit: 10, order, until })
    expect(data.map(({ id }) => String(id))).toEqual([first])
  }
})

const accountOf = () => newId('account', new Date())

test('an upgrade keeps the events of before in the order of their ids, first, and counts what an old process does', async () => {
  await using old = await createTestDatabase()
  await resetToBefore(old.db, '0004')
  const accountId = accountOf()
  const [sent, waiting] = [newIds(5), newIds(3)]
  await append(old.db, [...sent, ...waiting], accountId)
  await leaveOutbox(old.db, sent)

  // A process of the version before, whose statements are prepared.
  const client = new pg.Client({ connectionString: old.connectionString })
  client.on('error', () => undefined)
  await client.connect()
  await using _connected = { [Symbol.asyncDispose]: () => client.end() }
  const leave = (ids: readonly string[]) =>
    client.query({ name: 'leave', text: 'DELETE FROM outbox WHERE event_id = ANY($1::text[])', values: [ids] })
  await leave([])

  await migrateToLatest(old.db)
  const options = { accountId }
  expect(await poll(old.db, undefined, options)).toEqual([...sent, ...waiting])
  const late = newIds(2)
  await append(old.db, late, accountId)
  // In another order than that of the ids.
  await leave(late.slice(1))
  await leave([...waiting, ...late.slice(0, 1)])
  const all = [...sent, ...waiting, ...late.toReversed()]
  expect(await poll(old.db, undefined, options)).toEqual(all)
  for (const [index, id] of all.entries()) {
    expect(await poll(old.db, id, { accountId, limit: 2 })).toEqual(all.slice(index + 1, index + 3))
  }
  const pages = async (order: 'asc' | 'desc', after?: string) => {
    const seen: string[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await events.list(old.db, live(accountId), { limit: 3, order, after, cursor })
      seen.push(...page.data.map(({ id }) => String(id)))
      if (page.nextCursor === null) return seen
      cursor = page.nextCursor
    }
  }
  expect(await pages('asc')).toEqual(all)
  expect(await pages('desc', sent[1])).toEqual(all.slice(2).toReversed())
  expect(await pages('asc', waiting[0])).toEqual(all.slice(6))
})

test('an upgrade goes on where a dump of the rows was restored: nothing hangs on the cluster', async () => {
  const ids = newIds(4)
  await append(db, ids)
  await leaveOutbox(db, ids.slice(2))
  expect(await poll(db)).toEqual([...ids.slice(2), ...ids.slice(0, 2)])
  await using other = await createTestDatabase()
  for (const table of ['events', 'outbox', 'event_counters', 'event_positions']) {
    const { rows } = await sql<object>`SELECT * FROM ${sql.table(table)} WHERE account_id = ${account}`.execute(db)
    await sql`
        INSERT INTO ${sql.table(table)}
        SELECT * FROM json_populate_recordset(NULL::${sql.table(table)}, ${JSON.stringify(rows)}::json)
      `.execute(other.db)
  }
  const next = newIds(1)
  await append(other.db, next)
  await leaveOutbox(other.db, ids.slice(0, 2))
  expect(await poll(other.db, ids[3])).toEqual([...ids.slice(0, 2), ...next])
})
