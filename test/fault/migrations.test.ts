import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { describe, expect, onTestFinished, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { startApp } from '../../server/app.ts'
import { connect, type Db } from '../../server/database/connection.ts'
import { type Migrations, migrateToLatest, migrations } from '../../server/database/migrate.ts'
import { OperatorError } from '../../server/errors.ts'
import { createLogger } from '../../server/logging.ts'
import { createTestTime } from '../support/clock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { startReceiver } from '../support/receiver.ts'
import { configOf, startTestService, type TestService } from '../support/service.ts'

/*
 * Versions of the code that know different migrations, on one database.
 */

const doing = (...statements: string[]): Migration => ({
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db)
  },
})

/** What a version that only adds things would bring: to tables that are read and written all the time. */
const additive = doing(
  ...['subscribers', 'contacts', 'events', 'deliveries'].map(
    (table) => `ALTER TABLE ${table} ADD COLUMN added_later text NOT NULL DEFAULT 'so'`,
  ),
  'CREATE TABLE added_later (id text PRIMARY KEY)',
)
const newer: Migrations = { ...migrations, '9998-more': additive }

const logger = createLogger({ level: 'silent' })

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

describe('a process of an older version', () => {
  test('goes on while a newer one starts beside it and migrates: nothing is lost', async () => {
    const time = createTestTime()
    await using older = await startTestService({ time, expectErrors: true })
    await using receiver = await startReceiver()
    await older.client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['subscriber.added', 'contact.created'] },
    })
    const list = await older.client.succeed(contract.audiences.create, { body: { name: 'List' } })
    const path = `/v1/audiences/${list.id}/contacts`
    const busy = Promise.withResolvers<void>()
    let isStarted = false
    async function keepAdding(name: string): Promise<void> {
      for (let index = 0; !isStarted || index < 20; index++) {
        await addPerson(older, path, `${name}${index}@example.com`)
        if (index === 5) busy.resolve()
      }
    }
    const adding = Promise.all(['a', 'b'].map(keepAdding))
    await busy.promise
    await using second = await startTestService({ beside: older, time, migrations: newer, expectErrors: true })
    isStarted = true
    await adding
    for (let index = 0; index < 10; index++) await addPerson(second, path, `newer${index}@example.com`)

    expect(await applied(older.database.db)).toEqual(Object.keys(newer))
    for (const { client } of [older, second]) {
      expect(await client.send('GET', '/readyz')).toMatchObject({ status: 200 })
    }
    const ids = (await older.database.db.selectFrom('events').select('id').execute()).map(({ id }) => id)
    const missing = () => {
      const delivered = new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))
      return ids.filter((id) => !delivered.has(id))
    }
    // What was claimed when the migration broke off its reading is claimed again once it has been silent.
    await expect
      .poll(async () => (missing().length > 0 ? time.advance(10_000).then(missing) : []), { timeout: 15_000 })
      .toEqual([])
    // All that may go wrong is a deadlock with the migration, of which one side begins again.
    const codes = [...older.logged, ...second.logged].map((line) => JSON.parse(line).err?.code)
    expect(codes.filter((code) => code !== '40P01')).toEqual([])
  })

  test('is not started on the database of a newer one, and says which version is needed', async () => {
    const { db, connectionString } = await migratedDatabase()
    await migrateToLatest(db, newer)
    const starting = startApp(configOf({}, connectionString), { logger })
    await expect(starting).rejects.toThrow(OperatorError)
    await expect(starting).rejects.toThrow(
      'the database is of a newer version, whose migration 9998-more is not known here; start that version, or restore the backup made before it',
    )
    expect(await applied(db)).toEqual(Object.keys(newer))
  })
})

/** Adds a person as a client does that tries again when it is told to. */
async function addPerson({ client }: TestService, path: string, email: string): Promise<void> {
  for (;;) {
    const { status } = await client.send('POST', path, { json: { email } })
    if (status === 201) return
    expect(status).toBe(503)
  }
}

describe('several processes at once', () => {
  test('migrate an empty database once', async () => {
    const database = await emptyDatabase()
    const results = await Promise.all(Array.from({ length: 6 }, () => migrateToLatest(anotherProcess(database), newer)))
    expect(results.filter((names) => names.length > 0)).toEqual([Object.keys(newer)])
    expect(await applied(database.db)).toEqual(Object.keys(newer))
  })

  test('start whole on an empty database, the queue too', async () => {
    const { db, connectionString } = await emptyDatabase()
    const apps = await Promise.all(
      Array.from({ length: 3 }, () => startApp(configOf({}, connectionString), { logger })),
    )
    for (const app of apps) {
      const answer = await fetch(`${app.url}/readyz`)
      expect(answer.status).toBe(200)
    }
    const accounts = await Promise.all(apps.map((app) => app.ensureFirstAccount()))
    expect(accounts.filter((account) => account !== null)).toHaveLength(1)
    for (const app of apps) await app.stop()
    expect(await applied(db)).toEqual(Object.keys(migrations))
  })

  test('wait for the one that migrates, also when it comes to nothing, and then do it', async () => {
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
})

describe('a migration that fails half-way', () => {
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

  test('is undone whole, with those before it of the same start, which says what to do', async () => {
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

  test('keeps neither the version before it nor the mended one from starting', async () => {
    const { db, connectionString } = await databaseWithAnAccount()
    const config = configOf({}, connectionString)
    await expect(startApp(config, { logger, migrations: half })).rejects.toThrow(/failed/)
    await (await startApp(config, { logger })).stop()
    await (await startApp(config, { logger, migrations: mended })).stop()
    expect(await applied(db)).toEqual(Object.keys(mended))
    expect(await tableExists(db, 'half_made')).toBe(true)
  })

  test('leaves a running older process at its work', async () => {
    await using older = await startTestService()
    await expect(startApp(configOf({}, older.database.connectionString), { logger, migrations: half })).rejects.toThrow(
      /9999-half failed/,
    )
    await addPerson(older, '/v1/subscribers', 'after@example.com')
    expect(await older.client.send('GET', '/readyz')).toMatchObject({ status: 200 })
  })
})
