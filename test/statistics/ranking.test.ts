import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { selectRanking } from '../../server/statistics/queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { plannerStates, rowsRead } from '../support/rows-read.ts'
import { live } from '../support/scope.ts'

/* The busiest of many tags in a month, counted in days that are rolled up and in deltas that are not. */

const tags = 200
const days = 30
const limit = 20
const since = new Date('2026-03-01T00:00:00Z')
const until = new Date('2026-03-31T00:00:00Z')

let database: TestDatabase
let accountId: string

beforeAll(async () => {
  database = await createTestDatabase()
  const { db } = database
  for (const table of ['statistics_days', 'statistics_deltas']) {
    await sql`ALTER TABLE ${sql.table(table)} SET (autovacuum_enabled = off)`.execute(db)
  }
  accountId = await seedAccount(db, since)
  const other = await seedAccount(db, since)
  // Each tag has its number of emails on each day. Days outside of the month, and another account, have many more.
  await sql`
    INSERT INTO statistics_days (account_id, mode, kind, key, day, sent, opened)
    SELECT account, 'live', 'tag', 'tag-' || number, ${since}::timestamptz + day * interval '1 day',
      CASE WHEN account = ${accountId} AND day BETWEEN 0 AND ${days - 1} THEN number ELSE 1000000 - number END, 1
    FROM unnest(${[accountId, other]}::text[]) AS account, generate_series(1, ${sql.lit(tags)}) AS number,
      generate_series(-2, ${sql.lit(days + 1)}) AS day
  `.execute(db)
  await sql`
    INSERT INTO statistics_deltas (account_id, mode, kind, key, hour, sent)
    VALUES (${accountId}, 'live', 'tag', 'tag-7', ${since}, 1000000), (${accountId}, 'live', 'tag', '', ${since}, 9000000),
      (${accountId}, 'live', 'tag', 'tag-8', ${until}, 9000000), (${accountId}, 'test', 'tag', 'tag-8', ${since}, 9000000)
  `.execute(db)
})
afterAll(() => database.drop())

describe.each(plannerStates('^statistics_d'))('where PostgreSQL %s', (_, statement) => {
  beforeAll(async () => {
    await sql.raw(statement).execute(database.db)
  })

  test('a ranking has the busiest, busiest first, with all their figures, and reads few rows', async () => {
    const query = { scope: live(accountId), kind: 'tag', since, until, limit } as const
    const read = await rowsRead(database.db, async (handle) => {
      const ranking = await selectRanking(handle, query)
      expect(ranking.map(({ key, sent, opened }) => [key, sent, opened])).toEqual([
        ['tag-7', 1_000_000 + 7 * days, days],
        ...Array.from({ length: limit - 1 }, (_, index) => [`tag-${tags - index}`, (tags - index) * days, days]),
      ])
    })
    expect(read).toBeLessThan(2 * tags * days)
  })
})
