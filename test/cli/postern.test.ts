import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { access, mkdir, mkdtemp, readdir, rm, watch, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KeyInfo, keysChannel } from '../../server/api-keys/service.ts'
import { connect } from '../../server/database/connection.ts'
import { type EmbeddedDatabase, startEmbeddedDatabase } from '../../server/database/embedded/start.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { compileCache } from '../support/compile-cache.ts'
import { scratchDirectory } from '../support/scratch.ts'

const program = join(import.meta.dirname, '..', '..', 'server', 'cli', 'postern.ts')

let parent: string

beforeAll(async () => {
  parent = await mkdtemp(join(scratchDirectory(), 'postern-cli-'))
})

afterAll(async () => {
  await rm(parent, { recursive: true, force: true })
})

type Env = { DATA_DIR?: string; DATABASE_URL?: string; RATE_LIMITS?: string }

function startPostern(env: Env, args: string[]) {
  // Nothing of our own environment: a DATABASE_URL there would be used.
  return spawn(process.execPath, [program, ...args], {
    env: { ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: parent,
  })
}

/** Runs the command line to its end. */
async function postern(env: Env, ...args: string[]) {
  const child = startPostern(env, args)
  const [stdout, stderr, [exitCode]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { stdout, stderr, exitCode: Number(exitCode) }
}

/** Runs a command that must succeed and print one JSON value and nothing else. */
async function posternJson(env: Env, ...args: string[]) {
  const { stdout, stderr, exitCode } = await postern(env, ...args, '--json')
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
  expect(stdout).toMatch(/^.+\n$/)
  return JSON.parse(stdout)
}

/** The database that the first start of a service leaves behind. */
async function startOnce(dataDir: string): Promise<void> {
  await using _database = await startEmbeddedDatabase({ dataDir })
}

async function hasServer(dataDir: string): Promise<boolean> {
  return access(join(dataDir, 'postgres', 'data', 'postmaster.pid')).then(
    () => true,
    () => false,
  )
}

describe('while no service runs', () => {
  test('keys create makes the first key while no service runs, and leaves no server behind', async () => {
    const env = { DATA_DIR: join(parent, 'fresh') }
    await startOnce(env.DATA_DIR)
    const key = await posternJson(env, 'keys', 'create', '--mode', 'live', '--name', 'CRM')
    expect(key).toMatchObject({
      id: expect.stringMatching(/^key_/),
      key: expect.stringMatching(/^postern_live_\w+$/),
      mode: 'live',
      permissions: ['full_access'],
      name: 'CRM',
      createdBy: { type: 'command_line', id: null },
      expiresAt: null,
      allowedAddresses: [],
    })
    expect(await hasServer(env.DATA_DIR)).toBe(false)
    const [account, ...others] = await posternJson(env, 'accounts', 'list')
    expect(account).toMatchObject({ id: expect.stringMatching(/^acc_/), plan: 'scale' })
    expect(others).toEqual([])
    expect(await posternJson(env, 'keys', 'list', '--account', account.id)).toMatchObject([{ id: key.id }])
  })

  test('keys create finishes after a Ctrl-C, and leaves no server behind', async () => {
    const dataDir = join(parent, 'interrupted')
    await startOnce(dataDir)
    const started = (async () => {
      for await (const { filename } of watch(join(dataDir, 'postgres', 'data')))
        if (filename === 'postmaster.pid') return
    })()
    const child = startPostern({ DATA_DIR: dataDir }, ['keys', 'create', '--mode', 'test', '--json'])
    const output = text(child.stdout)
    const exit = once(child, 'exit')
    await started
    child.kill('SIGINT')
    expect(await exit).toEqual([0, null])
    expect(JSON.parse(await output)).toMatchObject({ mode: 'test' })
    expect(await hasServer(dataDir)).toBe(false)
  })
})

describe('where no service was ever started', () => {
  const refusal = (dataDir: string) => ({
    stdout: '',
    stderr: `postern: there is no embedded database in ${dataDir}; start the service once, or set DATA_DIR or DATABASE_URL as the service has it\n`,
    exitCode: 1,
  })

  test.each([[['keys', 'list']], [['keys', 'create', '--mode', 'live']], [['migrate']]])(
    '%j is refused where no service was ever started, and makes nothing',
    async (args) => {
      expect(await postern({}, ...args)).toEqual(refusal(join(parent, '.postern')))
      expect(existsSync(join(parent, '.postern'))).toBe(false)
    },
  )

  test('keys list makes nothing in a directory of something else', async () => {
    const dataDir = join(parent, 'something else')
    await mkdir(dataDir)
    expect(await postern({ DATA_DIR: dataDir }, 'keys', 'list')).toEqual(refusal(dataDir))
    expect(await readdir(dataDir)).toEqual([])
  })

  test('keys list makes no database where a first start was cut short before it made one', async () => {
    const dataDir = join(parent, 'cut short')
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'lock'), '')
    expect(await postern({ DATA_DIR: dataDir }, 'keys', 'list')).toEqual(refusal(dataDir))
    expect(existsSync(join(dataDir, 'postgres'))).toBe(false)
  })
})

describe('while a service runs', () => {
  let env: { DATA_DIR: string }
  let database: EmbeddedDatabase

  beforeAll(async () => {
    env = { DATA_DIR: join(parent, 'running') }
    database = await startEmbeddedDatabase({ dataDir: env.DATA_DIR })
  })

  afterAll(async () => {
    await database.stop()
  })

  test('a running service knows at once a key that keys create makes, with its permissions', async () => {
    const permissions = ['webhooks:read', 'read_access']
    const created = await posternJson(env, 'keys', 'create', '--mode', 'test', '--permission', ...permissions)
    const db = connect({ connectionString: database.connectionString, max: 1, onError: () => undefined })
    const found = await createKeyServices().apiKeys.findBySecret(db, created.key)
    await db.destroy()
    expect(found).toMatchObject({ keyId: created.id, mode: 'test', permissions, isRevoked: false })
  })

  test('a running service is told of a key that keys revoke revokes', async () => {
    const { id } = await posternJson(env, 'keys', 'create', '--mode', 'test')
    const listener = new pg.Client({ connectionString: database.connectionString })
    await listener.connect()
    await listener.query(`LISTEN ${keysChannel}`)
    const told = once(listener, 'notification')
    expect((await postern(env, 'keys', 'revoke', id)).stdout).toBe(`The key "API key" (${id}) is revoked.\n`)
    expect(await told).toMatchObject([{ channel: keysChannel, payload: id }])
    await listener.end()
    const keys: { id: string; revokedAt: string | null }[] = await posternJson(env, 'keys', 'list')
    expect(keys.find((key) => key.id === id)?.revokedAt).not.toBeNull()
  })

  test('a running service is told of a key that keys delete deletes, and no list shows it', async () => {
    const { id } = await posternJson(env, 'keys', 'create', '--mode', 'test')
    const listener = new pg.Client({ connectionString: database.connectionString })
    await listener.connect()
    await listener.query(`LISTEN ${keysChannel}`)
    const told = once(listener, 'notification')
    expect((await postern(env, 'keys', 'delete', id)).stdout).toBe(`The key "API key" (${id}) is deleted.\n`)
    expect(await told).toMatchObject([{ channel: keysChannel, payload: id }])
    await listener.end()
    const keys: { id: string }[] = await posternJson(env, 'keys', 'list')
    expect(keys.map((key) => key.id)).not.toContain(id)
  })

  test('keys create wants --account where there are several accounts', async () => {
    const several = { DATA_DIR: join(parent, 'several') }
    await using _database = await startEmbeddedDatabase({ dataDir: several.DATA_DIR })
    await posternJson(several, 'keys', 'create', '--mode', 'test')
    const made = await postern(several, 'accounts', 'create', '--plan', 'free')
    const [, id = ''] =
      /npm run --silent postern -- keys create --mode test --account (acc_\w+)\n/.exec(made.stdout) ?? []
    expect(await postern(several, 'keys', 'create', '--mode', 'test')).toEqual({
      stdout: '',
      stderr: 'postern: there are several accounts; name one of "accounts list" with --account\n',
      exitCode: 1,
    })
    const { stdout } = await postern(several, 'keys', 'create', '--mode', 'test', '--account', id)
    expect(stdout).toContain(`\nIt is a key of the account ${id}.\n`)
  })

  test('an account of a plan of RATE_LIMITS can be made, and a key for it', async () => {
    const plans = { ...env, RATE_LIMITS: 'tiny=5' }
    const account = await posternJson(plans, 'accounts', 'create', '--plan', 'tiny', '--name', 'Second')
    expect(account).toMatchObject({ name: 'Second', plan: 'tiny' })
    const key = await posternJson(env, 'keys', 'create', '--mode', 'live', '--account', account.id)
    expect(await posternJson(env, 'keys', 'list', '--account', account.id)).toMatchObject([{ id: key.id }])
  })

  test('keys create makes a key that expires and is bound to addresses', async () => {
    const [account] = await posternJson(env, 'accounts', 'list')
    const args = ['--expires-at', '2099-01-31T00:00:00+01:00', '--allow', '203.0.113.0/24', '::ffff:10.0.0.1']
    const created = await postern(env, 'keys', 'create', '--mode', 'test', '--account', account.id, ...args)
    expect(created.stdout).toContain(
      'It expires at 2099-01-30T23:00:00.000Z.\nIt may be used from 203.0.113.0/24, 10.0.0.1.\n',
    )
    const keys: KeyInfo[] = await posternJson(env, 'keys', 'list', '--account', account.id)
    expect(keys.at(-1)).toMatchObject({
      expiresAt: '2099-01-30T23:00:00.000Z',
      allowedAddresses: ['203.0.113.0/24', '10.0.0.1'],
      lastUsedAt: null,
    })
  })

  test('keys create and keys list print text for people without --json', async () => {
    const [account] = await posternJson(env, 'accounts', 'list')
    const args = ['--mode', 'live', '--name', 'For people', '--account', account.id]
    const created = await postern(env, 'keys', 'create', ...args)
    expect(created.stdout).toMatch(/^postern_live_\w+\n\nThis is "For people" \(key_\w+\), with full_access.\n/)
    const listed = await postern(env, 'keys', 'list')
    expect(listed.stdout).toMatch(/^id +key +name +permissions +account +created +expires +allowed from +revoked\n/)
    expect(listed.stdout).toMatch(/^key_\w+ +postern_live_…\w{4} +For people +full_access +acc_\w+ +\S+Z$/m)
  })

  test.each([
    [['accounts', 'create', '--plan', 'gold'], 'postern: there is no plan "gold"; RATE_LIMITS has free, pro, scale\n'],
    [['keys', 'revoke', 'key_unknown'], 'postern: There is no API key with the id "key_unknown".\n'],
    [['keys', 'delete', 'key_unknown'], 'postern: There is no API key with the id "key_unknown".\n'],
    [['keys', 'list', '--account', 'acc_unknown'], 'postern: There is no account with the id "acc_unknown".\n'],
    [
      ['keys', 'create', '--mode', 'test', '--account', 'acc_unknown'],
      'postern: There is no account with the id "acc_unknown".\n',
    ],
  ])('%j is not possible: one line, exit code 1', async (args, stderr) => {
    expect(await postern(env, ...args)).toEqual({ stdout: '', stderr, exitCode: 1 })
  })

  test('migrate brings an empty database of DATABASE_URL to the schema, once', async () => {
    const admin = new pg.Client({ connectionString: database.connectionString })
    await admin.connect()
    await admin.query('CREATE DATABASE outside')
    await admin.end()
    const url = new URL(database.connectionString)
    url.pathname = '/outside'
    const outside = { DATABASE_URL: url.href }
    const { applied } = await posternJson(outside, 'migrate')
    expect(applied).toContain('0001-foundation')
    expect(await posternJson(outside, 'migrate')).toEqual({ applied: [] })
    expect((await postern(outside, 'migrate')).stdout).toBe('The database is up to date.\n')
    expect(await posternJson(outside, 'accounts', 'list')).toEqual([])
  })
})

describe('what cannot be understood', () => {
  test('a wrong option is told in one line, with exit code 2', async () => {
    expect(await postern({}, 'keys', 'create', '--mode', 'both')).toEqual({
      stdout: '',
      stderr: "postern: option '--mode <mode>' argument 'both' is invalid. Allowed choices are test, live.\n",
      exitCode: 2,
    })
  })
})

describe('a database that cannot be used', () => {
  test('a database that cannot be reached is told in one line, with exit code 1', async () => {
    const { stdout, stderr, exitCode } = await postern({ DATABASE_URL: 'postgres://ann:hush@127.0.0.1:1/m' }, 'migrate')
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
    expect(stderr).toMatch(/^postern: the database at 127.0.0.1:1 cannot be reached .*\n$/)
  })

  test('a bad setting is told in one line', async () => {
    expect((await postern({ RATE_LIMITS: 'free' }, 'keys', 'list')).stderr).toMatch(
      /^postern: RATE_LIMITS is "free", .*\n$/,
    )
  })
})

test('--help exits with code 0', async () => {
  const { stdout, stderr, exitCode } = await postern({}, 'keys', 'create', '--help')
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
  expect(stdout).toContain('Usage: postern keys create')
})
