import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { execute } from '../../server/database/prepared-execution.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
let client: pg.Client
let described: number

beforeAll(async () => {
  database = await createTestDatabase()
  client = new pg.Client({ connectionString: database.connectionString, pipeline: true })
  await client.connect()
  client.connection.on('rowDescription', () => {
    described += 1
  })
})
beforeEach(() => {
  described = 0
})
afterAll(async () => {
  await client.end()
  await database.drop()
})

/** Executes a statement as one that is prepared. */
function run(name: string, text: string, values: unknown[] = []) {
  return execute(client, { name, text, values })
}

test('a connection describes a prepared statement once, and each execution returns its own rows', async () => {
  const text = 'SELECT n AS number, $1::text AS text FROM generate_series(1, $2::integer) n'
  expect(await run('series', text, ['a', 2])).toEqual({
    rows: [
      { number: 1, text: 'a' },
      { number: 2, text: 'a' },
    ],
    rowCount: 2,
  })
  expect(await run('series', text, ['b', 1])).toEqual({ rows: [{ number: 1, text: 'b' }], rowCount: 1 })
  expect(await run('series', text, ['c', 0])).toEqual({ rows: [], rowCount: 0 })
  expect(described).toBe(1)
})

test('prepared statements that are sent at once return what they would one after the other', async () => {
  const text = 'SELECT $1::integer AS one'
  const results = await Promise.all([1, 2, 3].map((one) => run('at once', text, [one])))
  expect(results.map(({ rows }) => rows)).toEqual([[{ one: 1 }], [{ one: 2 }], [{ one: 3 }]])
})

test('a prepared statement returns the values of every type that a usual one does', async () => {
  const text = `
    SELECT 1::smallint AS a, 2::bigint AS b, 3.5::numeric AS c, 1e300::float8 AS d, true AS e, 'é'::text AS f,
      '{"a":[1]}'::json AS g, '{"a":[1]}'::jsonb AS h, '{a,NULL,"b,c"}'::text[] AS i, '\\x00ff'::bytea AS j,
      '2026-03-01T09:30:00Z'::timestamptz AS k, NULL::text AS l, '{1,2}'::int[] AS m, interval '1 day' AS n,
      $1::text AS "A name", $2::jsonb AS o, $3::bytea AS p, $4::timestamptz AS q, $5::text[] AS r, $6::text AS s
  `
  const values = ['x', { a: 1 }, Buffer.from('ü'), new Date(0), ['a', null], null]
  const usual = await client.query(text, values)
  for (let time = 0; time < 2; time++) {
    const { rows } = await run('all types', text, values)
    expect(rows).toEqual(usual.rows)
    expect(Object.keys(rows[0])).toEqual(Object.keys(usual.rows[0]))
  }
})

test('a prepared statement without rows returns how many rows it changed', async () => {
  await client.query('CREATE TEMPORARY TABLE counted (n integer)')
  const insert = 'INSERT INTO counted SELECT generate_series(1, $1::integer)'
  expect(await run('add counted', insert, [3])).toEqual({ rows: [], rowCount: 3 })
  expect(await run('add counted', insert, [2])).toEqual({ rows: [], rowCount: 2 })
  expect(await run('change counted', 'UPDATE counted SET n = 0')).toEqual({ rows: [], rowCount: 5 })
  expect(await run('set', "SET LOCAL work_mem = '4MB'")).toEqual({ rows: [], rowCount: 0 })
})

test('a prepared statement goes on after its table got a column, and is refused after a column of it changed', async () => {
  await client.query('CREATE TEMPORARY TABLE changing (a integer, b text)')
  await client.query("INSERT INTO changing VALUES (1, 'x')")
  const text = 'SELECT a, b FROM changing'
  expect(await run('changing', text)).toMatchObject({ rows: [{ a: 1, b: 'x' }] })
  await client.query('ALTER TABLE changing ADD COLUMN c integer DEFAULT 5')
  expect(await run('changing', text)).toMatchObject({ rows: [{ a: 1, b: 'x' }] })
  await client.query('ALTER TABLE changing ALTER a TYPE text')
  await expect(run('changing', text)).rejects.toThrow('cached plan must not change result type')
})

test('a prepared statement that could not be parsed is parsed and described the next time', async () => {
  const text = 'SELECT a FROM coming'
  await expect(run('coming', text)).rejects.toThrow(/"coming" does not exist/)
  await client.query('CREATE TEMPORARY TABLE coming AS SELECT 7 AS a')
  expect(await run('coming', text)).toMatchObject({ rows: [{ a: 7 }] })
  expect(await run('coming', text)).toMatchObject({ rows: [{ a: 7 }] })
})

test('a prepared statement that fails at some parameters returns rows at others', async () => {
  const text = 'SELECT 6 / $1::integer AS a'
  for (let time = 0; time < 2; time++) {
    await expect(run('divide', text, [0])).rejects.toThrow('division by zero')
    expect(await run('divide', text, [2])).toMatchObject({ rows: [{ a: 3 }] })
  }
})

test('the error of a prepared statement leads to the code that executed it', async () => {
  const error = await run('divide', 'SELECT 6 / $1::integer AS a', [0]).catch((reason) => reason)
  expect(error).toBeInstanceOf(pg.DatabaseError)
  expect(error.stack).toMatch(/prepared-execution\.test\.ts/)
})

test('parameters that cannot be written, and two statements with one name, are refused without harm', async () => {
  const circular: Record<string, unknown> = {}
  circular.self = circular
  await expect(run('json', 'SELECT $1::jsonb AS a', [circular])).rejects.toThrow(/circular/)
  expect(await run('json', 'SELECT $1::jsonb AS a', [{ b: 1 }])).toMatchObject({ rows: [{ a: { b: 1 } }] })
  await expect(run('json', 'SELECT 1 AS a')).rejects.toThrow('two prepared statements have the name "json"')
  expect(await run('json', 'SELECT $1::jsonb AS a', [{ b: 2 }])).toMatchObject({ rows: [{ a: { b: 2 } }] })
})

test('a row that cannot be read fails its statement, and not those behind it', async () => {
  const circle = 718
  const parse = pg.types.getTypeParser(circle)
  pg.types.setTypeParser(circle, () => {
    throw new Error('no circle')
  })
  try {
    const all = [run('circle', "SELECT '<(0,0),1>'::circle AS a"), run('behind', 'SELECT 1 AS a')]
    const results = await Promise.allSettled(all)
    expect(results).toMatchObject([
      { status: 'rejected', reason: { message: 'no circle' } },
      { status: 'fulfilled', value: { rows: [{ a: 1 }] } },
    ])
  } finally {
    pg.types.setTypeParser(circle, parse)
  }
})

test('prepared statements fail when their connection breaks, also those behind', async () => {
  const other = new pg.Client({ connectionString: database.connectionString, pipeline: true })
  other.on('error', () => undefined)
  await other.connect()
  const ending = { name: 'end', text: 'SELECT pg_terminate_backend(pg_backend_pid())', values: [] }
  const sent = [execute(other, ending), execute(other, { name: 'one', text: 'SELECT 1', values: [] })]
  const results = await Promise.allSettled(sent)
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await expect(execute(other, ending)).rejects.toThrow(/not queryable/)
})

test('the query_timeout of a connection ends a prepared statement, and none that was answered', async () => {
  const other = new pg.Client({ connectionString: database.connectionString, pipeline: true, query_timeout: 60_000 })
  other.on('error', () => undefined)
  await other.connect()
  const { rows } = await other.query('SELECT pg_backend_pid() AS pid')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    expect(await execute(other, { name: 'one', text: 'SELECT 1 AS a', values: [] })).toMatchObject({ rows: [{ a: 1 }] })
    expect(vi.getTimerCount()).toBe(0)
    const late = execute(other, { name: 'late', text: 'SELECT pg_sleep(600)', values: [] })
    vi.advanceTimersByTime(60_000)
    await expect(late).rejects.toThrow('Query read timeout')
  } finally {
    vi.useRealTimers()
    // It still sleeps, or is about to.
    await client.query('SELECT pg_terminate_backend($1, 60000)', [rows[0]?.pid])
  }
})

test('a connection goes on after a parameter that cannot be sent, and after a statement without text', async () => {
  const odd = Object.assign(() => undefined, { toString: () => 5 })
  await expect(run('odd', 'SELECT $1::text AS a', [odd])).rejects.toThrow()
  expect((await client.query('SELECT 1 AS a')).rows).toEqual([{ a: 1 }])
  expect(await run('empty', '')).toEqual({ rows: [], rowCount: 0 })
  expect(await run('odd', 'SELECT $1::text AS a', ['b'])).toMatchObject({ rows: [{ a: 'b' }] })
})
