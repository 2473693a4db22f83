import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { connect, type Db } from '../../server/database/connection.ts'
import { withDatabase } from './database-url.ts'

export type TestDatabase = AsyncDisposable & {
  connectionString: string
  db: Db
  /** Ends all connections and drops the database. */
  drop(): Promise<void>
}

/**
 * A database of its own for a test or a file, with the whole schema and nothing in it.
 *
 * @param sessionOptions Settings for the sessions of `db`, such as a test clock's.
 */
export async function createTestDatabase({ sessionOptions }: { sessionOptions?: string } = {}): Promise<TestDatabase> {
  const server = inject('databaseServer')
  const name = `${inject('databasePrefix')}_${randomBytes(6).toString('hex')}`
  await administer(server, `CREATE DATABASE ${name} TEMPLATE ${inject('templateDatabase')}`)
  const connectionString = withDatabase(server, name)
  const db = connect({
    connectionString,
    max: 10,
    onError: () => {},
    ...(sessionOptions === undefined ? {} : { sessionOptions }),
  })
  async function drop(): Promise<void> {
    await db.destroy()
    await administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
  return { connectionString, db, drop, [Symbol.asyncDispose]: drop }
}

/** Runs one statement on the server that may not stand in a transaction. */
export async function administer(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
