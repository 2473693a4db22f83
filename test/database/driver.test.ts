import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Db, inTransaction, type Trx } from '../../server/database/connection.ts'
import { prepare, QueryBehindCommit } from '../../server/database/prepared.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
})
afterAll(() => database.drop())

/** Puts a name down, together with the next statement. */
const noteStatement = prepare<{ name: string }>({ name: 'note', sendsWithNext: true })`
  INSERT INTO settings (name, value) VALUES (${'name'}, 'noted')
`

async function note(trx: Trx, name: string): Promise<void> {
  await noteStatement(trx, { name })
}

/** Puts a name down, sent ahead of the next statement. */
const noteAhead = prepare<{ name: string }>({ name: 'note_ahead', sendsAhead: true })`
  INSERT INTO settings (name, value) VALUES (${'name'}, 'noted')
`

async function isNoted(handle: Db | Trx, name: string): Promise<boolean> {
  const row = await handle.selectFrom('settings').select('name').where('name', '=', name).executeTakeFirst()
  return row !== undefined
}

/** How many transactions other sessions have open in this database. */
async function openTransactions(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::integer AS count FROM pg_stat_activity
    WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
  `.execute(db)
  return rows[0]?.count ?? 0
}

/** How many sessions wait for a lock in this database. */
async function waitingForLocks(): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::integer AS count FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
  `.execute(db)
  return rows[0]?.count ?? 0
}

test('a statement that is sent with the next is seen by the next, and committed', async () => {
  await inTransaction(db, async (trx) => {
    await note(trx, 'seen')
    expect(await isNoted(trx, 'seen')).toBe(true)
  })
  expect(await isNoted(db, 'seen')).toBe(true)
})

test('a statement that is sent with the next is sent with the COMMIT when it is the last', async () => {
  await inTransaction(db, (trx) => note(trx, 'last'))
  expect(await isNoted(db, 'last')).toBe(true)
})

test('a statement that is sent with the next fails the COMMIT when it fails, and with it all that was done', async () => {
  await inTransaction(db, (trx) => note(trx, 'twice'))
  const again = inTransaction(db, async (trx) => {
    await trx.insertInto('settings').values({ name: 'beside', value: '' }).execute()
    await note(trx, 'twice')
  })
  await expect(again).rejects.toThrow(/duplicate key/)
  expect(await isNoted(db, 'beside')).toBe(false)
})

test('a statement that is sent with the next fails the next when it fails, with its own error', async () => {
  await inTransaction(db, (trx) => note(trx, 'once'))
  const again = inTransaction(db, async (trx) => {
    await note(trx, 'once')
    await isNoted(trx, 'once')
  })
  await expect(again).rejects.toThrow(/duplicate key/)
})

test('a statement that is sent with the next is never sent when the transaction is undone before', async () => {
  await inTransaction(db, (trx) => note(trx, 'there'))
  const undone = inTransaction(db, async (trx) => {
    expect(await isNoted(trx, 'there')).toBe(true)
    // It would fail.
    await note(trx, 'there')
    throw new Error('second thoughts')
  })
  await expect(undone).rejects.toThrow('second thoughts')
})

test('a statement that is sent ahead is executed before anything follows, with those that waited', async () => {
  await inTransaction(db, async (trx) => {
    const held = inTransaction(db, async (other) => {
      await other.insertInto('settings').values({ name: 'ahead', value: '' }).execute()
      await note(trx, 'before ahead')
      await noteAhead(trx, { name: 'ahead' })
      // It waits for the row of the other transaction, though nothing was sent after it.
      await expect.poll(() => waitingForLocks()).toBe(1)
      throw new Error('the other is undone')
    })
    await expect(held).rejects.toThrow('the other is undone')
    expect(await isNoted(trx, 'before ahead')).toBe(true)
    expect(await isNoted(trx, 'ahead')).toBe(true)
  })
  expect(await isNoted(db, 'ahead')).toBe(true)
})

test('a statement that is sent ahead fails the next or the COMMIT when it fails, with its own error', async () => {
  await inTransaction(db, (trx) => note(trx, 'taken'))
  const withNext = inTransaction(db, async (trx) => {
    await noteAhead(trx, { name: 'other' })
    await noteAhead(trx, { name: 'taken' })
    await isNoted(trx, 'other')
  })
  await expect(withNext).rejects.toThrow(/duplicate key/)
  const withCommit = inTransaction(db, async (trx) => {
    await noteAhead(trx, { name: 'other' })
    await noteAhead(trx, { name: 'taken' })
  })
  await expect(withCommit).rejects.toThrow(/duplicate key/)
  expect(await isNoted(db, 'other')).toBe(false)
})

test('a statement that is sent ahead and fails leaves the error of what undid its transaction, and the connection', async () => {
  await inTransaction(db, (trx) => note(trx, 'known'))
  const undone = inTransaction(db, async (trx) => {
    await noteAhead(trx, { name: 'known' })
    throw new Error('second thoughts')
  })
  await expect(undone).rejects.toThrow('second thoughts')
  await inTransaction(db, (trx) => noteAhead(trx, { name: 'afterwards' }))
  expect(await isNoted(db, 'afterwards')).toBe(true)
})

test('a transaction begins with its first statement', async () => {
  await inTransaction(db, async (trx) => {
    expect(await openTransactions()).toBe(0)
    await isNoted(trx, 'there')
    expect(await openTransactions()).toBe(1)
  })
  expect(await openTransactions()).toBe(0)
})

test('a transaction tells when nothing was committed, also where the failure of a statement was passed over', async () => {
  const blind = inTransaction(db, async (trx) => {
    await trx.insertInto('settings').values({ name: 'blind', value: '' }).execute()
    await sql`SELECT 1 / 0`.execute(trx).catch(() => undefined)
  })
  await expect(blind).rejects.toThrow('nothing was committed')
  expect(await isNoted(db, 'blind')).toBe(false)
})

test('a transaction leaves nothing behind for the next user of its connection', async () => {
  await expect(inTransaction(db, (trx) => sql`SELECT 1 / 0`.execute(trx))).rejects.toThrow('division by zero')
  await db.transaction().execute(async () => undefined)
  const { rows } = await sql<{ alone: boolean }>`
      SELECT xact_start = query_start AS alone FROM pg_stat_activity WHERE pid = pg_backend_pid()
    `.execute(db)
  expect(rows).toEqual([{ alone: true }])
})

test('a transaction has the isolation it asks for', async () => {
  const level = await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute((trx) => sql<{ transaction_isolation: string }>`SHOW transaction_isolation`.execute(trx))
  expect(level.rows).toEqual([{ transaction_isolation: 'repeatable read' }])
})

test('a prepared statement is parsed once in a session, and answers each time', async () => {
  const add = prepare<{ a: number; b: number }, { sum: number }>({ name: 'add' })`
      SELECT ${'a'}::integer + ${'b'}::integer + 10 * ${'a'} AS sum
    `
  await inTransaction(db, async (trx) => {
    expect(await add(trx, { a: 1, b: 2 })).toEqual([{ sum: 13 }])
    expect(await add(trx, { b: 4, a: 3 })).toEqual([{ sum: 37 }])
    const { rows } = await sql<{ name: string; uses: number }>`
        SELECT name, (generic_plans + custom_plans)::integer AS uses FROM pg_prepared_statements WHERE name = 'add'
      `.execute(trx)
    expect(rows).toEqual([{ name: 'add', uses: 2 }])
  })
})

test('a prepared statement has the parts that never change in its text, and parameters in the order of their names', async () => {
  const columns = { sql: 'two, one' }
  const pick = prepare<{ one: number; two: number }, { one: number; two: number }>({ name: 'pick' })`
    SELECT ${columns} FROM (SELECT ${'one'}::integer AS one, ${'two'}::integer AS two) AS numbers
  `
  expect(await pick(db, { two: 2, one: 1 })).toEqual([{ two: 2, one: 1 }])
})

/** Sends a SELECT of names behind the COMMIT, and appends its result to `told`: null when it was not run. */
async function readBehind(trx: Trx, told: (string[] | null)[], name: string, text = sql`name`): Promise<void> {
  const compiled = sql<{
    name: string
  }>`SELECT ${text} AS name FROM settings WHERE name = ANY(${''}::text[])`.compile(trx)
  await trx.executeQuery(
    new QueryBehindCommit<{ name: string }>(compiled, {
      name: `behind ${name}`,
      parameters: () => [[name, `${name} of another`]],
      onRows: (rows) => told.push(rows?.map((row) => row.name).toSorted() ?? null),
    }),
  )
}

test('a statement behind the COMMIT sees what is committed by then, by this transaction and by others', async () => {
  const told: (string[] | null)[] = []
  await inTransaction(db, async (trx) => {
    await readBehind(trx, told, 'behind')
    await note(trx, 'behind')
    expect(told).toEqual([])
    await inTransaction(db, (other) => note(other, 'behind of another'))
  })
  expect(told).toEqual([['behind', 'behind of another']])
})

test('a statement behind the COMMIT is not told of anything when the transaction is undone', async () => {
  const told: (string[] | null)[] = []
  const undone = inTransaction(db, async (trx) => {
    await readBehind(trx, told, 'undone')
    await note(trx, 'undone')
    throw new Error('no')
  })
  await expect(undone).rejects.toThrow('no')
  const failing = inTransaction(db, async (trx) => {
    await readBehind(trx, told, 'failed')
    await note(trx, 'failed')
    await note(trx, 'failed')
  })
  await expect(failing).rejects.toThrow()
  expect(await isNoted(db, 'failed')).toBe(false)
  expect(told).toEqual([])
})

test('a statement behind the COMMIT does not undo what was committed when it fails', async () => {
  const told: (string[] | null)[] = []
  await inTransaction(db, async (trx) => {
    await readBehind(trx, told, 'kept', sql`(1 / 0)::text`)
    await note(trx, 'kept')
  })
  expect(told).toEqual([null])
  expect(await isNoted(db, 'kept')).toBe(true)
})

test('a transaction whose connection is gone tells the error that ended it, and its connection is not used again', async () => {
  const run = inTransaction(db, async (trx) => {
    const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(trx)
    await sql`SELECT pg_terminate_backend(${rows[0]?.pid}, 60000)`.execute(db)
    throw new Error('what was wrong')
  })
  await expect(run).rejects.toThrow('what was wrong')
  await inTransaction(db, (trx) => noteAhead(trx, { name: 'after' }))
  expect(await isNoted(db, 'after')).toBe(true)
})
