import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Db, inTransaction } from '../../server/database/connection.ts'
import { warnOfMissingIndexes } from '../../server/database/large-indexes.ts'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { selectEmails } from '../../server/emails/queries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'
import { testing } from '../support/scope.ts'

let database: TestDatabase
let db: Db
const at = new Date('2026-03-01T09:30:00.000Z')

/** Of the version before there were modes, with a table of emails of `megabytes`. Returns the account. */
async function migrateWith(megabytes: number): Promise<string> {
  await resetToBefore(db, '0004')
  const accountId = await seedAccount(db, at)
  await sql`ALTER TABLE emails ALTER subject SET STORAGE EXTERNAL`.execute(db)
  const emailId = await seedEmail(db, { accountId, at, to: ['ada@example.org'] })
  await sql`UPDATE emails SET subject = repeat('x', ${megabytes * 1024 * 1024}) WHERE id = ${emailId}`.execute(db)
  await migrateToLatest(db)
  return accountId
}

async function warnings(): Promise<string[]> {
  const told: string[] = []
  await warnOfMissingIndexes(db, { warn: (text: unknown) => void told.push(String(text)) })
  return told
}

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
})
afterAll(() => database.drop())

test('the migration makes an index of a small table', async () => {
  await migrateWith(1)
  expect(await warnings()).toEqual([])
})

test('of a large table it makes none, and the start says how to make it, whatever an attempt left', async () => {
  const accountId = await migrateWith(129)
  const warningOf = async (index: string) =>
    (await warnings()).find((warning) => warning.startsWith(`the index ${index} `)) ?? ''
  const statementsIn = (warning: string) => /while the service works: (.*)$/.exec(warning)?.[1]?.split(/(?<=;) /) ?? []
  const warning = await warningOf('emails_by_mode')
  expect(warning).toMatch(
    /^the index emails_by_mode is missing: a migration does not make it of a large table, so lists of emails/,
  )
  // As an attempt leaves it that was interrupted.
  await sql`CREATE INDEX emails_by_mode ON emails (account_id, mode, id)`.execute(db)
  await sql`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'emails_by_mode'::regclass`.execute(db)
  const again = await warningOf('emails_by_mode')
  expect(again).toContain('was left unfinished')
  const statements = statementsIn(again)
  expect(statements).toHaveLength(3)
  const others = statementsIn(await warningOf('emails_bounced'))
  expect(others).toHaveLength(1)
  for (const statement of [...statements, ...others]) await sql.raw(statement).execute(db)
  expect(await warnings()).toEqual([])

  // The purpose of the index: a list of test emails reads few rows of a table full of live ones.
  await sql`UPDATE emails SET subject = 'Welcome'`.execute(db)
  await sql`
    INSERT INTO emails SELECT copy.* FROM emails e, generate_series(1, 5000) n, json_populate_record(
      NULL::emails, (to_jsonb(e) || jsonb_build_object('id', 'email_' || lpad(n::text, 26, '0')))::json
    ) AS copy
  `.execute(db)
  await sql`ANALYZE emails`.execute(db)
  const read = await inTransaction(db, async (trx) => {
    const page = { query: { limit: 50 }, recipientKey: undefined, before: undefined, limit: 51 }
    expect(await selectEmails(trx, testing(accountId), page)).toEqual([])
    const { rows } = await sql<{ count: number }>`
      SELECT (seq_tup_read + idx_tup_fetch)::float8 AS count FROM pg_stat_xact_user_tables WHERE relname = 'emails'
    `.execute(trx)
    return rows[0]?.count
  })
  // The planner looks at the ends of indexes.
  expect(read).toBeLessThan(50)
})
