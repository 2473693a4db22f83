import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { connect } from '../../server/database/connection.ts'
import { startEmbeddedDatabase } from '../../server/database/embedded.ts'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { installQueue } from '../../server/queue/queue.ts'
import { withDatabase } from './database-url.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A server to make databases on. */
    databaseServer: string
    /** The name of a database with the whole schema, to be cloned. */
    templateDatabase: string
    /** What the names of this run's databases begin with. */
    databasePrefix: string
  }
}

/** A server for all tests: `TEST_DATABASE_URL`, or an embedded one made for this run. */
async function startServer(): Promise<{ url: string; stop: () => Promise<void> }> {
  // biome-ignore lint/style/noProcessEnv: a setting of the tests, not of the service
  const url = process.env.TEST_DATABASE_URL
  if (url !== undefined && url !== '') return { url, stop: async () => {} }
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'))
  const server = await startEmbeddedDatabase({
    dataDir,
    // What is lost in a crash of the machine is of no use here.
    settings: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_connections: '300',
    },
  })
  return {
    url: server.connectionString,
    stop: async () => {
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer()
  const prefix = `postern_test_${randomBytes(4).toString('hex')}`
  const template = `${prefix}_template`
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${template}`)
  const url = withDatabase(server.url, template)
  const db = connect({ connectionString: url, max: 2, onError: () => {} })
  await migrateToLatest(db)
  await db.destroy()
  await installQueue(url, (error) => {
    throw error
  })
  project.provide('databaseServer', server.url)
  project.provide('templateDatabase', template)
  project.provide('databasePrefix', prefix)

  return async () => {
    const left = await admin.query<{ datname: string }>(`SELECT datname FROM pg_database WHERE datname LIKE $1`, [
      `${prefix}%`,
    ])
    for (const { datname } of left.rows) await admin.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`)
    await admin.end()
    await server.stop()
  }
}
