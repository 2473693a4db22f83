import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SubscriberListQuery } from '../../contract/subscribers.ts'
import { inTransaction, type Trx } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { live } from '../support/scope.ts'
import { createWorld, type World } from '../support/worlds/audiences.ts'

let world: World
/** An account of its own for the search of many. */
let large: string

const people = [
  { email: 'Ada@example.org', firstName: 'Ada', lastName: 'Lovelace' },
  { email: 'grace.hopper@example.org', firstName: 'Grace', lastName: 'Hopper' },
  { email: 'hopper@example.org', firstName: 'Émile', lastName: 'Grün' },
  { email: 'a_b@example.org', firstName: '100%', lastName: null },
  { email: 'axb@example.org', firstName: null, lastName: null },
]

beforeAll(async () => {
  world = await createWorld()
  const { db, account, stranger, subscribers, clock } = world
  for (const person of people) await subscribers.create(db, live(account), person)
  await subscribers.create(db, live(stranger), { email: 'ada@example.net', firstName: 'Ada', lastName: 'Hopper' })
  large = newId('account', clock.now())
  await db.insertInto('accounts').values({ id: large, name: 'Large', plan: 'scale' }).execute()
  await sql`
    INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, status)
    SELECT 'sub_' || lpad(n::text, 26, '0'), ${large}, e, e, 'Many', 'People', CASE WHEN n = 1 THEN 'active' ELSE 'unsubscribed' END
    FROM (SELECT n, 'person-' || lpad((20000 - n)::text, 6, '0') || '@example.org' AS e FROM generate_series(1, 10500) n) p
  `.execute(db)
  await sql`ANALYZE subscribers`.execute(db)
})
afterAll(() => world.end())

/** The addresses that a search finds in an account, through all pages. */
async function find(account: string, query: Partial<SubscriberListQuery>, limit = 100): Promise<string[]> {
  const found: string[] = []
  let cursor: string | null | undefined
  do {
    const page = await world.subscribers.list(world.db, account, { limit, ...query, ...(cursor && { cursor }) })
    found.push(...page.data.map(({ email }) => email))
    cursor = page.nextCursor
  } while (cursor !== null)
  return found
}

test.each([
  ['ada', ['Ada@example.org']],
  ['ADA@EXAMPLE', ['Ada@example.org']],
  ['ada lo', ['Ada@example.org']],
  ['  Ada   Lovelace ', ['Ada@example.org']],
  ['love', ['Ada@example.org']],
  ['hopper', ['hopper@example.org', 'grace.hopper@example.org']],
  ['GRÜN', ['hopper@example.org']],
  ['émile gr', ['hopper@example.org']],
  ['Émile', ['hopper@example.org']],
  ['example.org', []],
  ['a_', ['a_b@example.org']],
  ['%', []],
  ['100%', ['a_b@example.org']],
  ['\\', []],
  ["'", []],
  ['\u{10ffff}', []],
])('people are found by the beginning of address, name or last name, newest first: %j', async (search, found) => {
  expect(await find(world.account, { search })).toEqual(found)
})

test('a search goes with the status, and over pages', async () => {
  expect(await find(world.account, { search: 'a', status: 'unsubscribed' })).toEqual([])
  expect(await find(world.account, { search: 'a' }, 1)).toEqual([
    'axb@example.org',
    'a_b@example.org',
    'Ada@example.org',
  ])
})

test('of more than 500 people, a search finds the first by alphabet', async () => {
  const found = await find(large, { search: 'person-' })
  expect(found).toHaveLength(500)
  expect(found.toSorted()[0]).toBe('person-009500@example.org')
  expect(found.toSorted().at(-1)).toBe('person-009999@example.org')
})

test('people of a status that few have are looked for 10,000 at a time', async () => {
  const first = await world.subscribers.list(world.db, large, { limit: 5, status: 'active' })
  expect(first).toEqual({ data: [], nextCursor: expect.any(String) })
  expect(await find(large, { status: 'active' })).toEqual(['person-019999@example.org'])
})

test('a search, a status and an address read no more rows than they may', async () => {
  const queries: Partial<SubscriberListQuery>[] = [
    {},
    { email: 'person-019999@example.org' },
    { search: 'none' },
    { status: 'unsubscribed' },
  ]
  for (const query of queries) {
    expect(await rowsReadBy((trx) => world.subscribers.list(trx, large, { limit: 5, ...query }))).toBeLessThan(20)
  }
  const wide = await rowsReadBy((trx) => world.subscribers.list(trx, large, { limit: 5, search: 'people' }))
  expect(wide).toBeLessThan(600)
})

test('contacts of an audience are found in the same way', async () => {
  const { db, account, audiences, contacts } = world
  const { id } = await audiences.create(db, live(account), { name: 'News' })
  for (const email of ['ada@example.org', 'hopper@example.org']) await contacts.add(db, live(account), id, { email })
  const found = async (query: object) =>
    (await contacts.list(db, account, id, { limit: 20, ...query })).data.map(({ email }) => email)
  expect(await found({ search: 'love' })).toEqual(['Ada@example.org'])
  expect(await found({ search: 'h' })).toEqual(['hopper@example.org'])
  expect(await found({ search: 'grace' })).toEqual([])
  expect(await found({ search: 'h', status: 'unsubscribed' })).toEqual([])
})

test('contacts of a status that few have are looked for 10,000 at a time', async () => {
  const { db, audiences, contacts } = world
  const { id } = await audiences.create(db, live(large), { name: 'All' })
  await sql`
    INSERT INTO contacts (audience_id, subscriber_id, account_id, status)
    SELECT ${id}, id, account_id, status FROM subscribers WHERE account_id = ${large}
  `.execute(db)
  const first = await contacts.list(db, large, id, { limit: 5, status: 'active' })
  expect(first).toEqual({ data: [], nextCursor: expect.any(String) })
  const second = await contacts.list(db, large, id, { limit: 5, status: 'active', cursor: first.nextCursor ?? '' })
  expect(second).toMatchObject({ data: [{ email: 'person-019999@example.org' }], nextCursor: null })
})

test('suppressed addresses are found by their beginning, and by reason without reading the others', async () => {
  const { db, account, stranger, clock } = world
  const suppressions = createSuppressionService({ clock })
  await suppressions.create(db, account, { address: 'Ada@example.org' })
  await suppressions.create(db, stranger, { address: 'ada@example.net' })
  await sql`
    INSERT INTO suppressions (id, account_id, address, address_key, reason, created_at)
    SELECT 'sup_' || lpad(n::text, 26, '0'), ${account}, e, e, 'hard_bounce', now()
    FROM (SELECT n, 'gone-' || lpad((2000 - n)::text, 6, '0') || '@example.org' AS e FROM generate_series(1, 600) n) s
  `.execute(db)
  await sql`ANALYZE suppressions`.execute(db)
  const list = (query: object) => suppressions.list(db, account, { limit: 100, ...query })
  expect((await list({ search: 'ADA' })).data).toMatchObject([{ address: 'Ada@example.org' }])
  expect((await list({ search: 'gone', reason: 'manual' })).data).toEqual([])
  expect((await list({ search: 'gone-' })).data[0]).toMatchObject({ address: 'gone-001400@example.org' })
  const { data, nextCursor } = await list({ search: 'gone-0018' })
  expect(data).toMatchObject([{ address: 'gone-001800@example.org' }, ...data.slice(1)])
  expect({ count: data.length, nextCursor }).toEqual({ count: 100, nextCursor: null })
  expect(
    await rowsReadBy((trx) => suppressions.list(trx, account, { limit: 5, reason: 'manual' }), 'suppressions'),
  ).toBeLessThan(20)
})

/** Returns how many rows of a table, and entries of its indexes, `work` reads. */
async function rowsReadBy(work: (trx: Trx) => Promise<unknown>, table = 'subscribers'): Promise<number> {
  const count = async (trx: Trx) => {
    const { rows } = await sql<{ count: number }>`
      SELECT (t.seq_tup_read + sum(i.idx_tup_read))::float8 AS count
      FROM pg_stat_xact_user_tables t
      CROSS JOIN LATERAL (
        SELECT pg_stat_get_xact_tuples_returned(indexrelid) AS idx_tup_read FROM pg_index WHERE indrelid = t.relid
      ) i
      WHERE t.relname = ${table} GROUP BY t.seq_tup_read
    `.execute(trx)
    return rows[0]?.count ?? 0
  }
  return inTransaction(world.db, async (trx) => {
    const before = await count(trx)
    await work(trx)
    return (await count(trx)) - before
  })
}
