import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { connect, type Db } from '../../server/database/connection.ts'
import { dropDatabase } from './database-names.ts'
import { withDatabase } from './database-url.ts'
import { patienceMs } from './patience.ts'

export type TestDatabase = AsyncDisposable & {
  connectionString: string
  db: Db
  /**
   * Closes `db` and drops the database. Throws when a connection of `db` broke meanwhile, or when
   * somebody else is still connected: a service that was not stopped, a pool that was not closed.
   */
  drop(): Promise<void>
}

export type TestDatabaseOptions = {
  /** Settings for the sessions of `db`, such as those of a test clock. Default: none. */
  sessionOptions?: string
  /** Told when a connection of `db` breaks while idle. Default: `drop()` throws it. */
  onError?: (error: Error) => void
  /** How long `drop()` waits for connections to close before it throws. Milliseconds. Default: `patienceMs`. */
  closingMs?: number
}

/**
 * A database of its own for a test or a file, with the whole schema and nothing in it.
 *
 * @example
 * beforeAll(async () => { database = await createTestDatabase() })
 * afterAll(() => database.drop())
 */
export async function createTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { sessionOptions, closingMs = patienceMs } = options
  const name = `${inject('databasePrefix')}_${randomBytes(6).toString('hex')}`
  const connectionString = withDatabase(inject('databaseServer'), name)
  const errors: Error[] = []
  await administer((admin) =>
    admin.query(`CREATE DATABASE ${name} TEMPLATE ${inject('templateDatabase')} ${inject('cloneStrategy')}`),
  )
  const db = connect({
    connectionString,
    max: 10,
    onError: options.onError ?? ((error) => errors.push(error)),
    ...(sessionOptions === undefined ? {} : { sessionOptions }),
  })
  let dropping: Promise<void> | undefined

  async function dropOnce(): Promise<void> {
    await db.destroy()
    const left = await administer(async (admin) => {
      const connections = await remainingConnections(admin, name, closingMs)
      await dropDatabase(admin, name)
      return connections
    })
    if (left.length > 0) errors.push(new Error(`connections were left open to the test database: ${left.join(', ')}`))
    if (errors.length > 0) throw new AggregateError(errors, errors.map((error) => error.message).join('; '))
  }

  function drop(): Promise<void> {
    dropping ??= dropOnce()
    return dropping
  }

  return { connectionString, db, drop, [Symbol.asyncDispose]: drop }
}

/** Does something on the server of the tests that does not belong to one database. */
export async function administer<T>(work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: inject('databaseServer'), application_name: 'postern tests' })
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.end()
  }
}

const pollMs = 20

/** Who is still connected to `database`, after those who just left had time to be gone. */
async function remainingConnections(admin: pg.Client, database: string, closingMs: number): Promise<string[]> {
  const deadline = performance.now() + closingMs
  for (;;) {
    const { rows } = await admin.query<{ name: string }>(
      `SELECT format('%s (%s: %s)', application_name, state, left(query, 80)) AS name FROM pg_stat_activity
       WHERE datname = $1 AND backend_type = 'client backend'`,
      [database],
    )
    if (rows.length === 0 || performance.now() > deadline) return rows.map((row) => row.name)
    await delay(pollMs)
  }
}
