import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { assertDatabase } from '../../server/database/check-database.ts'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../server/database/embedded/start.ts'
import type { Database } from '../../server/database/schema.ts'
import { scratchDirectory } from '../support/scratch.ts'

let dataDir: string
let database: EmbeddedDatabase

beforeAll(async () => {
  dataDir = await mkdtemp(join(scratchDirectory(), 'postern-connection-'))
  database = await startEmbeddedDatabase({ dataDir })
})

afterAll(async () => {
  await database.stop()
  await rm(dataDir, { recursive: true })
})

/** The URL of the database of these tests, changed. */
function urlWith(change: (url: URL) => void): string {
  const url = new URL(database.connectionString)
  change(url)
  return url.href
}

/** Returns the error that the operator sees with this URL. Null: none. `patienceMs`: time limit for the connection. */
async function toldOf(url: string, patienceMs = 10_000): Promise<string | null> {
  const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: patienceMs })
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  try {
    await assertDatabase(db, url)
    return null
  } catch (error) {
    expect(error).toHaveProperty('name', 'OperatorError')
    return error instanceof Error ? error.message : String(error)
  } finally {
    await db.destroy()
  }
}

test('a database that can be used passes', async () => {
  expect(await toldOf(database.connectionString)).toBeNull()
})

describe('a database that cannot be used is explained, without its password', () => {
  test('a database where nobody listens is explained', async () => {
    const url = 'postgres://ann:hush@127.0.0.1:1/mail'
    expect(await toldOf(url)).toBe(
      'the database at 127.0.0.1:1 cannot be reached (ECONNREFUSED); check that PostgreSQL runs there, and the host and port in DATABASE_URL',
    )
  })

  test('a database that says nothing is explained', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const { port } = silent.address() as AddressInfo
    expect(await toldOf(`postgres://ann:hush@127.0.0.1:${port}/mail`, 300)).toMatch(/:\d+ does not answer; check/)
    silent.close()
  })

  test('a database whose host has no address is explained', async () => {
    expect(await toldOf('postgres://ann:hush@nowhere.invalid/mail')).toBe(
      'the database host nowhere.invalid was not found; check the host in DATABASE_URL',
    )
  })

  test('a wrong password of the database is explained, and not told', async () => {
    const url = urlWith((url) => {
      url.password = 'hush'
    })
    const told = await toldOf(url)
    expect(told).toMatch(/refuses the password of "postern"; check the user and password in DATABASE_URL$/)
    expect(told).not.toContain('hush')
  })

  test('a missing password of the database is explained', async () => {
    const url = urlWith((url) => {
      url.password = ''
    })
    expect(await toldOf(url)).toMatch(/asks for a password; put it in DATABASE_URL$/)
  })

  test('a missing database is explained', async () => {
    const url = urlWith((url) => {
      url.pathname = '/mail'
    })
    expect(await toldOf(url)).toMatch(/^there is no database "mail" at 127.0.0.1:\d+; create it \(createdb mail\), or/)
  })

  test('a database without TLS is explained where TLS is wanted', async () => {
    const url = urlWith((url) => url.searchParams.set('sslmode', 'verify-full'))
    expect(await toldOf(url)).toMatch(/^no secure connection .*; check sslmode in DATABASE_URL/)
  })

  test('a PostgreSQL older than 14 is explained', async () => {
    // Answers for the version in place of the server's own function.
    const db = new Kysely<Database>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: database.connectionString }) }),
    })
    await sql`CREATE SCHEMA aged`.execute(db)
    await sql`CREATE FUNCTION aged.current_setting(text) RETURNS text LANGUAGE sql
      RETURN CASE $1 WHEN 'server_version' THEN '13.21' ELSE '130021' END`.execute(db)
    await db.destroy()
    const url = urlWith((url) => url.searchParams.set('options', '-c search_path=aged,pg_catalog'))
    expect(await toldOf(url)).toMatch(/is PostgreSQL 13.21, and 14 is the oldest that works; upgrade it, or/)
  })
})
