import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { maxKeysPerDay } from '../../contract/statistics.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { countRecipients, type RecipientCount } from '../../server/statistics/count-recipients.ts'
import type { EmailFigure } from '../../server/statistics/figures.ts'
import { deleteOldFigures } from '../../server/statistics/retention.ts'
import { type DeltaPosition, rollUp } from '../../server/statistics/roll-up.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { live, testing } from '../support/scope.ts'
import { statisticsOf } from '../support/statistics.ts'

const now = new Date('2026-03-05T09:30:00.000Z')
const clock = { now: () => now }

let database: TestDatabase
let accountId: string

beforeEach(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, now)
})
afterEach(() => database.drop())

type Given = Partial<Omit<RecipientCount, 'figures'>> & { figures?: EmailFigure[] }

/** Counts in one transaction. */
async function count(...counted: Given[]): Promise<void> {
  await inTransaction(database.db, (trx) =>
    countRecipients(
      trx,
      counted.map((one) => ({
        scope: live(accountId),
        domainId: 'dom_a',
        tags: [],
        campaignId: null,
        recipientDomain: 'example.com',
        at: now,
        figures: ['sent' as const],
        ...one,
      })),
    ),
  )
}

async function rollUpAll(): Promise<number> {
  let pages = 0
  let after: DeltaPosition = null
  do {
    after = await rollUp(database.db, after)
    pages += 1
  } while (after !== null)
  return pages
}

async function rowsOf(table: 'statistics_deltas' | 'statistics_hours' | 'statistics_days'): Promise<number> {
  const { rows } = await sql<{ count: number }>`SELECT count(*)::int AS count FROM ${sql.table(table)}`.execute(
    database.db,
  )
  return rows[0]?.count ?? 0
}

const seen = async (query = {}, scope = live(accountId)) => {
  const { totals, data } = await statisticsOf(database.db, clock, scope, query)
  return { totals: totals.emails, data: data.map(({ emails }) => emails?.sent) }
}

test('a roll-up changes no figure, and leaves no delta', async () => {
  const yesterday = new Date('2026-03-04T10:15:00.000Z')
  await count({ tags: ['news', 'weekly'], figures: ['sent', 'delivered'] }, { domainId: 'dom_b' })
  await count({ at: yesterday, tags: ['news'] }, { domainId: null })
  await count({ scope: testing(accountId) })
  const queries = [{}, { step: 'day' }, { domainId: 'dom_a' }, { tag: 'news' }, { tag: 'weekly', step: 'day' }] as const
  const before = await Promise.all(queries.map((query) => seen(query)))
  expect(before.map(({ totals }) => totals?.sent)).toEqual([4, 4, 2, 2, 1])
  await rollUpAll()
  expect(await Promise.all(queries.map((query) => seen(query)))).toEqual(before)
  expect(await seen({}, testing(accountId))).toMatchObject({ totals: { sent: 1 } })
  expect(await rowsOf('statistics_deltas')).toBe(0)
  // And what comes later is added.
  await count({ tags: ['news'] })
  await rollUpAll()
  expect(await seen({ tag: 'news' })).toMatchObject({ totals: { sent: 3 } })
  expect(await seen()).toMatchObject({ totals: { sent: 5, delivered: 1 } })
})

test('a roll-up that does not commit leaves everything to the next one', async () => {
  await count({}, {})
  await sql`ALTER TABLE statistics_days RENAME TO elsewhere`.execute(database.db)
  await expect(rollUpAll()).rejects.toThrow('statistics_days')
  await sql`ALTER TABLE elsewhere RENAME TO statistics_days`.execute(database.db)
  expect(await rowsOf('statistics_hours')).toBe(0)
  await rollUpAll()
  expect(await seen()).toMatchObject({ totals: { sent: 2 } })
})

test('a roll-up takes more than one page where more waits, of all accounts', async () => {
  const others = [await seedAccount(database.db, now), await seedAccount(database.db, now)]
  await sql`
      INSERT INTO statistics_deltas (account_id, mode, kind, key, hour, sent)
      SELECT account_id, 'live', 'domain', 'dom_a', '2026-03-05 09:00Z', 1
      FROM unnest(${[accountId, ...others]}::text[]) account_id, generate_series(1, 2_500)
    `.execute(database.db)
  expect(await rollUpAll()).toBe(2)
  for (const account of [accountId, ...others]) {
    expect(await seen({}, live(account))).toMatchObject({ totals: { sent: 2_500 } })
  }
  expect(await rowsOf('statistics_hours')).toBe(6)
})

test('a roll-up beside another one counts nothing twice, and neither waits for those who count', async () => {
  let left = 40
  const counting = Array.from({ length: 4 }, async () => {
    while (left-- > 0) await count({ domainId: `dom_${left % 3}`, tags: ['news'] }, {})
  })
  const rolling = Array.from({ length: 3 }, async () => {
    while (left > 0) await rollUpAll()
  })
  await Promise.all([...counting, ...rolling])
  expect(await seen()).toMatchObject({ totals: { sent: 80 } })
  await rollUpAll()
  expect(await seen()).toMatchObject({ totals: { sent: 80 } })
  expect(await seen({ tag: 'news', step: 'day' })).toMatchObject({ totals: { sent: 40 } })
})

test('a roll-up leaves out what was counted for an account that is deleted', async () => {
  const gone = await seedAccount(database.db, now)
  await count({ scope: live(gone) }, {})
  await database.db.deleteFrom('accounts').where('id', '=', gone).execute()
  await rollUpAll()
  expect(await rowsOf('statistics_deltas')).toBe(0)
  expect(await seen()).toMatchObject({ totals: { sent: 1 } })
})

test('a campaign has figures by domain for the first thousand domains of a day, and all in its own', async () => {
  const domains = Array.from({ length: maxKeysPerDay + 100 }, (_, n) => `d${n}.example`)
  const known = { campaignId: 'cmp_a', recipientDomain: 'gmail.com' }
  await count(...domains.map((recipientDomain) => ({ campaignId: 'cmp_a', recipientDomain })), known)
  await rollUpAll()
  const { rows } = await sql<{ kind: string; keys: number; sent: number }>`
    SELECT kind, count(*)::int AS keys, sum(sent)::int AS sent FROM statistics_days
    WHERE kind LIKE 'campaign%' GROUP BY kind ORDER BY kind
  `.execute(database.db)
  expect(rows).toEqual([
    { kind: 'campaign', keys: 1, sent: domains.length + 1 },
    { kind: 'campaign_domain', keys: maxKeysPerDay, sent: maxKeysPerDay },
    { kind: 'campaign_mailbox', keys: 1, sent: 1 },
  ])
  // Of parts only the days are read.
  const hours = await database.db.selectFrom('statistics_hours').select('kind').distinct().execute()
  expect(hours.map(({ kind }) => kind).toSorted()).toEqual(['campaign', 'domain', 'emails'])
})

const tags = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `tag ${from + index}`)
/** One email for each ten tags. */
const tagged = (names: string[]) =>
  Array.from({ length: Math.ceil(names.length / 10) }, (_, n) => ({ tags: names.slice(10 * n, 10 * n + 10) }))

test('an account that makes up tags has figures of its own for the first thousand of a day, and its total has all', async () => {
  await count(...tagged(tags(0, 900)))
  await rollUpAll()
  await count(...tagged(tags(800, 2_000)))
  await rollUpAll()
  const keys = await database.db.selectFrom('statistics_days').select('key').where('kind', '=', 'tag').execute()
  expect(keys).toHaveLength(maxKeysPerDay)
  expect(await seen()).toMatchObject({ totals: { sent: 90 + 120 } })
  expect(await seen({ tag: 'tag 850' })).toMatchObject({ totals: { sent: 2 } })
  // A day later there is room again, and those that are known go on.
  const tomorrow = new Date(now.getTime() + 86_400_000)
  await count({ tags: ['tag 1999'], at: tomorrow }, { tags: ['tag 850'] })
  await rollUpAll()
  expect(await seen({ tag: 'tag 1999', until: '2026-03-07T00:00:00Z' })).toMatchObject({ totals: { sent: 1 } })
  expect(await seen({ tag: 'tag 850' })).toMatchObject({ totals: { sent: 3 } })
})

test('an account that makes up tags takes no room from its domains, nor from another account', async () => {
  const other = await seedAccount(database.db, now)
  await count(...tagged(tags(0, 1_000)))
  await rollUpAll()
  await count({ domainId: 'dom_late' }, { scope: live(other), tags: ['news'] })
  await rollUpAll()
  expect(await seen({ domainId: 'dom_late' })).toMatchObject({ totals: { sent: 1 } })
  expect(await seen({ tag: 'news' }, live(other))).toMatchObject({ totals: { sent: 1 } })
})

test('retention keeps hours for 31 days, and days for as long as is set', async () => {
  const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000)
  for (const days of [0, 30, 32, 89, 91]) await count({ at: daysAgo(days) })
  await rollUpAll()
  await deleteOldFigures(database.db, now, 90 * 86_400_000)
  const hours = await database.db.selectFrom('statistics_hours').select('hour').where('kind', '=', 'emails').execute()
  const days = await database.db.selectFrom('statistics_days').select('day').where('kind', '=', 'emails').execute()
  expect([hours.length, days.length]).toEqual([2, 4])
})
