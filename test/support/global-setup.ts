import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { connect } from '../../server/database/connection.ts'
import { startEmbeddedDatabase } from '../../server/database/embedded/start.ts'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { installQueue } from '../../server/queue/queue.ts'
import { dropDatabase, dropLeftovers, holdPrefix, listDatabases } from './database-names.ts'
import { withDatabase } from './database-url.ts'
import { createRunDirectory, dataDirOf, removeLeftoverRuns } from './run-directory.ts'

declare module 'vitest' {
  // biome-ignore lint/style/useConsistentTypeDefinitions: only an interface can be added to
  interface ProvidedContext {
    /** A server to make databases on. */
    databaseServer: string
    /** The name of a database with the whole schema, to be cloned. */
    templateDatabase: string
    /** The clause after the name of the template in `CREATE DATABASE`. May be empty. */
    cloneStrategy: string
    /** The prefix of the names of this run's databases. */
    databasePrefix: string
    /** The folder of this run, which is deleted after it. */
    runDirectory: string
    /** Where the test client writes down which answers it has seen. */
    exercisedDirectory: string
  }
}

type Server = { url: string; cloneStrategy: string; stop: () => Promise<void> }

/** A server for all tests: `TEST_DATABASE_URL`, or an embedded one made for this run. */
async function startServer(runDirectory: string): Promise<Server> {
  const url = process.env.TEST_DATABASE_URL ?? ''
  if (url !== '') return { url, cloneStrategy: '', stop: async () => undefined }
  const server = await startEmbeddedDatabase({
    dataDir: dataDirOf(runDirectory),
    settings: {
      // Nothing here must outlive a crash of the machine.
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      // Each file has a service with its own pools.
      max_connections: '300',
      // It is shared among all databases: with that of the service, autovacuum would visit one every two seconds.
      autovacuum_naptime: '60s',
    },
  })
  return {
    url: server.connectionString,
    // Half the processor time of the default, which writes all pages to the log. It has a checkpoint, which costs as
    // good as nothing with these settings, and waits for the disk elsewhere.
    cloneStrategy: 'STRATEGY file_copy',
    stop: () => server.stop(),
  }
}

async function administrate(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'postern tests' })
  try {
    await client.connect()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(
      `The tests cannot connect to their database server (${reason}). TEST_DATABASE_URL must name a PostgreSQL from version 14 where databases may be created; without it the tests start one of their own.`,
      { cause: error },
    )
  }
  return client
}

/** Makes the database that every other is cloned from: the schema of the service and of the queue. */
async function createTemplate(admin: pg.Client, url: string): Promise<void> {
  await admin.query(`CREATE DATABASE ${new URL(url).pathname.slice(1)}`)
  const errors: Error[] = []
  const db = connect({ connectionString: url, max: 2, onError: (error) => errors.push(error) })
  await migrateToLatest(db)
  await db.destroy()
  await installQueue(url, (error) => errors.push(error))
  if (errors.length > 0) throw new AggregateError(errors, 'the template database could not be made')
}

/** Called by the runner before the first test; what it answers is called after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  try {
    return await prepare(project)
  } catch (error) {
    throw printable(error)
  }
}

/** Builds the dashboard that the test services serve, where its sources have changed. */
async function buildDashboard(): Promise<void> {
  const root = join(import.meta.dirname, '../..')
  await promisify(execFile)(process.execPath, [join(root, 'scripts/dashboard.ts')], { cwd: root })
}

async function prepare(project: TestProject): Promise<() => Promise<void>> {
  await using ending = new AsyncDisposableStack()
  await Promise.all([removeLeftoverRuns(), buildDashboard()])
  const runDirectory = await createRunDirectory()
  ending.defer(() => rm(runDirectory, { recursive: true, force: true }))
  const server = await startServer(runDirectory)
  ending.defer(() => server.stop())
  const admin = await administrate(server.url)
  ending.defer(() => admin.end())
  const dropped = await dropLeftovers(admin)
  if (dropped.length > 0) console.warn(`Dropped ${dropped.length} test databases of runs that were killed.`)
  const prefix = await holdPrefix(admin)
  ending.defer(async () => {
    for (const name of await listDatabases(admin, `${prefix}_`)) await dropDatabase(admin, name)
  })
  const template = `${prefix}_template`
  await createTemplate(admin, withDatabase(server.url, template))
  const exercised = join(runDirectory, 'exercised')
  await mkdir(exercised)
  project.provide('runDirectory', runDirectory)
  project.provide('exercisedDirectory', exercised)
  project.provide('databaseServer', server.url)
  project.provide('templateDatabase', template)
  project.provide('cloneStrategy', server.cloneStrategy)
  project.provide('databasePrefix', prefix)

  const teardown = ending.move()
  return () => teardown.disposeAsync()
}

/** The runner fails to print the stack of an error that is thrown here, and with it the message. */
function printable(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error)
  const shown = new Error(message, { cause: message })
  shown.stack = message
  return shown
}
