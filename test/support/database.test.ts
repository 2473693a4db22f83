import { sql } from 'kysely'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { administer, createTestDatabase } from './database.ts'
import { dropLeftovers, holdPrefix, listDatabases } from './database-names.ts'

test('a clone has the whole schema, nothing in it, and is gone afterwards', async () => {
  const database = await createTestDatabase()
  expect(await database.db.selectFrom('accounts').selectAll().execute()).toEqual([])
  const name = new URL(database.connectionString).pathname.slice(1)
  await database.drop()
  expect(await administer((admin) => listDatabases(admin, name))).toEqual([])
})

test('a connection left open fails the test', async () => {
  const database = await createTestDatabase({ closingMs: 0 })
  const client = new pg.Client({ connectionString: database.connectionString, application_name: 'the forgotten one' })
  client.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()))
  await client.connect()
  await expect(database.drop()).rejects.toThrow(/left open.*the forgotten one/)
  await ended
})

test('a connection that broke fails the test', async () => {
  const database = await createTestDatabase()
  const { rows } = await sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`.execute(database.db)
  await administer((admin) => admin.query('SELECT pg_terminate_backend($1, 5000)', [rows[0]?.pid]))
  await expect(database.drop()).rejects.toThrow(/terminating connection/)
})

test('databases are dropped when their run no longer lives, and only then', async () => {
  const run = new pg.Client({ connectionString: inject('databaseServer') })
  await run.connect()
  const prefix = await holdPrefix(run)
  const name = `${prefix}_x`
  await administer(async (admin) => {
    await admin.query(`CREATE DATABASE ${name}`)
    expect(await dropLeftovers(admin)).not.toContain(name)
    await run.end()
    // The end of a session frees its locks a moment later.
    await admin.query('SELECT pg_advisory_lock(hashtext($1))', [prefix])
    await admin.query('SELECT pg_advisory_unlock(hashtext($1))', [prefix])
    expect(await dropLeftovers(admin)).toContain(name)
    expect(await listDatabases(admin, prefix)).toEqual([])
  })
})
