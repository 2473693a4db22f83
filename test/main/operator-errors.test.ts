import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { type Env, runService, startService } from './service-process.ts'

const someKey = Buffer.alloc(32, 1).toString('base64')
const otherKey = Buffer.alloc(32, 2).toString('base64')

let parent: string

beforeAll(async () => {
  parent = await mkdtemp(join(scratchDirectory(), 'postern-errors-'))
})

afterAll(async () => {
  await rm(parent, { recursive: true, force: true })
})

/** The one line that a start says that must fail. */
async function refusalOf(env: Env): Promise<string> {
  const { stdout, stderr, exitCode } = await runService(env)
  expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
  expect(stderr).toMatch(/^postern: .*\n$/)
  return stderr.slice('postern: '.length, -1)
}

test('a start with a bad setting says why and what to do, in one line', async () => {
  expect(await refusalOf({ PORT: 'http' })).toBe('PORT is "http", but must be a whole number from 0 to 65,535')
})

test('a start with a database without an encryption key says why and what to do, in one line', async () => {
  expect(await refusalOf({ DATABASE_URL: 'postgres://127.0.0.1:1/mail' })).toMatch(/^ENCRYPTION_KEY is needed/)
})

test('a start with a database that cannot be reached says why and what to do, in one line', async () => {
  const env = { DATABASE_URL: 'postgres://ann:hush@127.0.0.1:1/mail', ENCRYPTION_KEY: someKey }
  expect(await refusalOf(env)).toMatch(/^the database at 127.0.0.1:1 cannot be reached .*; check that PostgreSQL runs/)
})

test('a start with a file for TLS that is something else says why and what to do, in one line', async () => {
  await using database = await createTestDatabase()
  const tls = { INBOUND_SMTP_TLS_CERT: 'README.md', INBOUND_SMTP_TLS_KEY: 'README.md' }
  const env = { DATABASE_URL: database.connectionString, ENCRYPTION_KEY: someKey, INBOUND_SMTP_PORT: '0', ...tls }
  expect(await refusalOf(env)).toMatch(
    /^INBOUND_SMTP_TLS_CERT: there is no certificate in README.md \(.*\); give a file/,
  )
})

test('a start with a database that does not exist says why and what to do, in one line', async () => {
  await using database = await createTestDatabase()
  const url = new URL(database.connectionString)
  url.pathname = '/no_such_database'
  const env = { DATABASE_URL: url.href, ENCRYPTION_KEY: someKey }
  expect(await refusalOf(env)).toMatch(/^there is no database "no_such_database" at .*; create it/)
})

test('a start with an encryption key that is not the one of the database says why and what to do, in one line', async () => {
  await using database = await createTestDatabase()
  const env = { DATABASE_URL: database.connectionString }
  {
    await using service = await startService({ ...env, ENCRYPTION_KEY: someKey })
    service.child.kill('SIGTERM')
    expect(await service.exit).toEqual({ code: 0, signal: null })
  }
  expect(await refusalOf({ ...env, ENCRYPTION_KEY: otherKey })).toMatch(
    /^the encryption key, ENCRYPTION_KEY or else encryption.key in DATA_DIR, is not the one .*: bring the old one back/,
  )
})

test('a start with a data directory that cannot be written says why and what to do, in one line', async () => {
  const file = join(parent, 'file')
  await writeFile(file, '')
  expect(await refusalOf({ DATA_DIR: join(file, 'data') })).toMatch(/cannot be written .*set DATA_DIR to another/)
})

test.runIf(existsSync('/proc/self'))(
  'a start with a data directory where the system lets nothing be made says why and what to do, in one line',
  async () => {
    expect(await refusalOf({ DATA_DIR: '/proc/postern' })).toMatch(/cannot be written .*set DATA_DIR to another/)
  },
)

test('a start with a data directory that another service has says why and what to do, in one line', async () => {
  const dataDir = join(parent, 'taken')
  await using service = await startService({ DATA_DIR: dataDir })
  expect(await refusalOf({ DATA_DIR: dataDir })).toBe(
    `the data directory ${dataDir} is in use by process ${service.child.pid}; stop that one first, or set DATA_DIR to another directory`,
  )
  service.child.kill('SIGTERM')
  await service.exit
})

test('a start with a port that is in use says why and what to do, in one line', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const address = holder.address()
  const port = String(typeof address === 'object' ? address?.port : '')
  expect(await refusalOf({ DATA_DIR: join(parent, 'port'), PORT: port })).toMatch(
    new RegExp(`port ${port}.* in use.*PORT`),
  )
  holder.close()
})

test('a start with a host that is not of this machine says why and what to do, in one line', async () => {
  expect(await refusalOf({ DATA_DIR: join(parent, 'port'), HOST: '192.0.2.1' })).toMatch(/192\.0\.2\.1.*HOST/)
})
