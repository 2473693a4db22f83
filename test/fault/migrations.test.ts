import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { startApp } from '../../server/app.ts'
import { connect, type Db, inTransaction } from '../../server/database/connection.ts'
import { type Migrations, migrateToLatest, migrations } from '../../server/database/migrate.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createOutbox, type Outbox } from '../../server/outbox/append.ts'
import { OperatorError } from '../../server/shared/errors.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestTime } from '../support/clock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { resetToBefore } from '../support/older-schema.ts'
import { configOf, startTestService } from '../support/service.ts'
import { keepBooks } from './support/books.ts'

/*
 * Versions of the code that know different migrations, on one database.
 */

const doing = (...statements: string[]): Migration => ({
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
})

/** A migration that only adds: columns to tables that are read and written all the time, and a table. */
const additive = doing(
  ...['subscribers', 'contacts', 'events', 'deliveries'].map(
    (table) => `ALTER TABLE ${table} ADD COLUMN added_later text NOT NULL DEFAULT 'so'`,
  ),
  'CREATE TABLE added_later (id text PRIMARY KEY)',
)
const newer: Migrations = { ...migrations, '9998-more': additive }

const logger = createLogger({ level: 'silent' })

/** A single try: a migration that meets a deadlock fails. */
const onlyOnce = { tries: 1, lockTimeoutMs: 30_000, pause: () => Promise.resolve() }

/** A database with nothing in it, not even a schema. */
async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  await sql`DROP SCHEMA pgboss CASCADE`.execute(database.db)
  await sql`DROP SCHEMA public CASCADE`.execute(database.db)
  await sql`CREATE SCHEMA public`.execute(database.db)
  return database
}

async function migratedDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  return database
}

/** A pool of its own, as another process has. */
function anotherProcess({ connectionString }: TestDatabase): Db {
  const db = connect({ connectionString, max: 2, onError: () => undefined })
  onTestFinished(() => db.destroy())
  return db
}

async function applied(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration ORDER BY name`.execute(db)
  return rows.map(({ name }) => name)
}

async function tableExists(db: Db, table: string): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`SELECT to_regclass(${table}) IS NOT NULL AS found`.execute(db)
  return rows[0]?.found ?? false
}

test('a process of an older version goes on while a newer one starts beside it and migrates: nothing is lost', async () => {
  const time = createTestTime()
  await using older = await startTestService({ time, expectErrors: true })
  await using books = await keepBooks(older, time)
  const list = await older.client.succeed(contract.audiences.create, { body: { name: 'List' } })
  const path = `/v1/audiences/${list.id}/contacts`
  const operation = { path, body: (email: string) => ({ email }), status: 201 }
  await using load = books.startLoad(older, { operation })
  await load.acknowledged(20)
  await using second = await startTestService({ beside: older, time, migrations: newer, expectErrors: true })
  await using loadOfNewer = books.startLoad(second, { operation })
  await Promise.all([load.acknowledged(20), loadOfNewer.acknowledged(20)])
  await Promise.all([load.stop(), loadOfNewer.stop()])

  expect(await applied(older.database.db)).toEqual(Object.keys(newer))
  for (const { client } of [older, second]) {
    expect(await client.send('GET', '/readyz')).toMatchObject({ status: 200 })
  }
  // Deliveries whose reading the migration broke off after their claim are claimed again once the claim lapses.
  expect(await books.verdict()).toEqual([])
  // All that may go wrong is a deadlock with the migration, of which one side begins again.
  const lines = [...older.logged, ...second.logged].map((line) => JSON.parse(line))
  expect(lines.filter(({ err }) => err?.code !== '40P01')).toEqual([])
})

test('a process of an older version goes on while two newer ones start at once and migrate: nothing is lost', async () => {
  const time = createTestTime()
  await using older = await startTestService({ time, expectErrors: true })
  await using books = await keepBooks(older, time)
  await using load = books.startLoad(older)
  await load.acknowledged(20)
  const startNewer = () => startTestService({ beside: older, time, migrations: newer, expectErrors: true })
  const started = await Promise.allSettled([startNewer(), startNewer()])
  await using stack = new AsyncDisposableStack()
  const services = started.filter((one) => one.status === 'fulfilled').map(({ value }) => stack.use(value))
  expect(services).toHaveLength(2)
  const loads = services.map((service) => stack.use(books.startLoad(service)))
  await Promise.all([load, ...loads].map((one) => one.acknowledged(20)))
  await Promise.all([load, ...loads].map((one) => one.stop()))

  expect(await applied(older.database.db)).toEqual(Object.keys(newer))
  expect(await books.verdict()).toEqual([])
})

test('a process of an older version is not started on the database of a newer one, and says which version is needed', async () => {
  const { db, connectionString } = await migratedDatabase()
  await migrateToLatest(db, newer)
  const starting = startApp(configOf({}, connectionString), { logger })
  await expect(starting).rejects.toThrow(OperatorError)
  await expect(starting).rejects.toThrow(
    'the database is of a newer version, whose migration 9998-more is not known here; start that version, or restore the backup made before it',
  )
  expect(await applied(db)).toEqual(Object.keys(newer))
})

test.each([
  ['fan-out', 'outbox'],
  ['settlement', 'deliveries'],
])('flows come without a deadlock with a %s, which locks %s before it reads webhooks', async (_, table) => {
  const database = await migratedDatabase()
  await resetToBefore(database.db, '0011')
  await anotherProcess(database)
    .transaction()
    .execute(async (working) => {
      await sql`SELECT FROM ${sql.table(table)} FOR UPDATE`.execute(working)
      const migrating = migrateToLatest(anotherProcess(database), migrations, onlyOnce)
      await untilSomebodyWaits(database.db)
      await sql`SELECT FROM webhooks`.execute(working)
      return { migrating }
    })
    .then(({ migrating }) => migrating)
  expect(await applied(database.db)).toEqual(Object.keys(migrations))
})

test('several processes at once migrate an empty database once', async () => {
  const database = await emptyDatabase()
  const results = await Promise.all(Array.from({ length: 6 }, () => migrateToLatest(anotherProcess(database), newer)))
  expect(results.filter((names) => names.length > 0)).toEqual([Object.keys(newer)])
  expect(await applied(database.db)).toEqual(Object.keys(newer))
})

test('several processes at once start whole on an empty database, the queue too', async () => {
  const { db, connectionString } = await emptyDatabase()
  const apps = await Promise.all(Array.from({ length: 3 }, () => startApp(configOf({}, connectionString), { logger })))
  for (const app of apps) {
    const answer = await fetch(`${app.url}/readyz`)
    expect(answer.status).toBe(200)
  }
  const accounts = await Promise.all(apps.map((app) => app.ensureFirstAccount()))
  expect(accounts.filter((account) => account !== null)).toHaveLength(1)
  for (const app of apps) await app.stop()
  expect(await applied(db)).toEqual(Object.keys(migrations))
})

test('several processes at once wait for the one that migrates, also when it comes to nothing, and then do it', async () => {
  const database = await migratedDatabase()
  const slow: Migrations = { ...migrations, '9998-slow': doing('SELECT pg_advisory_xact_lock(1)') }
  const holder = anotherProcess(database)
  await holder.connection().execute(async (connection) => {
    await sql`SELECT pg_advisory_lock(1)`.execute(connection)
    const first = migrateToLatest(anotherProcess(database), slow)
    const failed = expect(first).rejects.toThrow(OperatorError)
    await untilSomebodyWaits(database.db)
    const second = migrateToLatest(anotherProcess(database), newer)
    // The process that migrates is killed: its connection is cut.
    await sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%pg_advisory_xact_lock(1)%'
          AND pid <> pg_backend_pid()
      `.execute(database.db)
    await failed
    expect(await second).toEqual(['9998-more'])
    await sql`SELECT pg_advisory_unlock(1)`.execute(connection)
  })
  expect(await applied(database.db)).toEqual(Object.keys(newer))
})

/** A session with a lock that every dump takes. */
async function dumping({ connectionString }: TestDatabase) {
  const client = new pg.Client({ connectionString, application_name: 'pg_dump' })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  await client.query('BEGIN')
  await client.query('LOCK TABLE events IN ACCESS SHARE MODE')
  return { pid: rows[0]?.pid, end: () => client.end() }
}

const now = new Date()

const append = (db: Db, outbox: Outbox) =>
  inTransaction(db, (trx) =>
    outbox.append(trx, { accountId: 'acc_1', mode: 'live' }, [
      {
        type: 'contact.deleted',
        data: { subscriberId: newId('subscriber', now), audienceId: newId('audience', now) },
      },
    ]),
  )

test('a session that holds a lock which a migration needs, as a dump does, holds nobody else up: the migration gives way, and is done when the session has ended', async () => {
  const database = await migratedDatabase()
  const dump = await dumping(database)
  onTestFinished(dump.end)
  const older = anotherProcess(database)
  const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
  const paused = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const patience = {
    tries: 2,
    lockTimeoutMs: 1_000,
    pause: () => {
      paused.resolve()
      return goOn.promise
    },
  }
  const migrating = migrateToLatest(anotherProcess(database), newer, patience)
  await untilSomebodyWaits(database.db, 'ALTER TABLE events')
  // Behind the migration, which waits for the dump. The dump goes on.
  await append(older, outbox)
  await paused.promise
  await append(older, outbox)
  expect(await applied(database.db)).toEqual(Object.keys(migrations))
  await dump.end()
  goOn.resolve()
  expect(await migrating).toEqual(['9998-more'])
  expect(await database.db.selectFrom('events').select('id').execute()).toHaveLength(2)
})

test('a session that holds a lock which a migration needs, as a dump does, is named after the last try, with what to do', async () => {
  const database = await migratedDatabase()
  const dump = await dumping(database)
  onTestFinished(dump.end)
  let pauses = 0
  const patience = { tries: 3, lockTimeoutMs: 20, pause: async () => void pauses++ }
  const migrating = migrateToLatest(anotherProcess(database), newer, patience)
  await expect(migrating).rejects.toThrow(OperatorError)
  await expect(migrating).rejects.toThrow(
    new RegExp(
      `^migration 9998-more waited 3 times for a lock, 0.02 s each, and the database is as it was before: session ${dump.pid} \\(pg_dump\\) has held a lock on "events" for \\d+ s; wait until it has ended, or end it with SELECT pg_terminate_backend`,
    ),
  )
  expect(pauses).toBe(2)
  expect(await applied(database.db)).toEqual(Object.keys(migrations))
})

const half: Migrations = {
  ...newer,
  '9999-half': doing('CREATE TABLE half_made (id text)', 'UPDATE accounts SET plan = NULL'),
}
const mended: Migrations = { ...newer, '9999-half': doing('CREATE TABLE half_made (id text)') }

async function databaseWithAnAccount(): Promise<TestDatabase> {
  const database = await migratedDatabase()
  await database.db.insertInto('accounts').values({ id: 'acc_1', name: 'Old', plan: 'scale' }).execute()
  return database
}

test('a migration that fails half-way is undone whole, with those before it of the same start, which says what to do', async () => {
  const { db, connectionString } = await databaseWithAnAccount()
  const starting = startApp(configOf({}, connectionString), { logger, migrations: half })
  await expect(starting).rejects.toThrow(OperatorError)
  await expect(starting).rejects.toThrow(
    /^migration 9999-half failed, and the database is as it was before: null value in column "plan".*; mend what it says and start again, or start the version you had$/,
  )
  expect(await applied(db)).toEqual(Object.keys(migrations))
  expect(await tableExists(db, 'half_made')).toBe(false)
  expect(await tableExists(db, 'added_later')).toBe(false)
})

test('a migration that fails half-way keeps neither the version before it nor the mended one from starting', async () => {
  const { db, connectionString } = await databaseWithAnAccount()
  const config = configOf({}, connectionString)
  await expect(startApp(config, { logger, migrations: half })).rejects.toThrow(/failed/)
  await (await startApp(config, { logger })).stop()
  await (await startApp(config, { logger, migrations: mended })).stop()
  expect(await applied(db)).toEqual(Object.keys(mended))
  expect(await tableExists(db, 'half_made')).toBe(true)
})

test('a migration that fails half-way leaves a running older process at its work', async () => {
  await using older = await startTestService()
  await using books = await keepBooks(older)
  await using load = books.startLoad(older)
  await load.acknowledged(20)
  await expect(startApp(configOf({}, older.database.connectionString), { logger, migrations: half })).rejects.toThrow(
    /9999-half failed/,
  )
  await load.acknowledged(20)
  await load.stop()
  expect(await older.client.send('GET', '/readyz')).toMatchObject({ status: 200 })
  expect(await books.verdict()).toEqual([])
})
