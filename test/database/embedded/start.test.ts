import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { joinEmbeddedDatabase, startEmbeddedDatabase } from '../../../server/database/embedded/start.ts'
import { scratchDirectory } from '../../support/scratch.ts'

let parent: string
/** One directory for the tests that do not need a fresh one, with a space in its name. */
let dataDir: string
/** Whether its first start reported it as new. */
let wasNew: boolean
const owners: ChildProcess[] = []

beforeAll(async () => {
  parent = await mkdtemp(join(scratchDirectory(), 'postern-embedded-'))
  dataDir = join(parent, 'data directory')
  await using database = await startEmbeddedDatabase({ dataDir })
  wasNew = database.isNew
  await query(database.connectionString, 'CREATE TABLE kept (word text)')
})

afterEach(() => {
  for (const owner of owners.splice(0)) owner.kill('SIGKILL')
})

afterAll(async () => {
  await rm(parent, { recursive: true, force: true })
})

async function query(connectionString: string, text: string): Promise<unknown[][]> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows
  } finally {
    await client.end()
  }
}

/** Another process that owns the directory, in a process group of its own. */
async function startOwner(directory: string) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve('../embedded-owner.ts')), directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  owners.push(child)
  // Listened for from the start: it may end while something else is awaited.
  const exit = once(child, 'exit')
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  async function nextLine(): Promise<string> {
    const { value } = await lines.next()
    if (value === undefined) throw new Error('the owner ended early')
    return value
  }
  return { child, exit, nextLine, connectionString: await nextLine() }
}

async function serverPid(directory: string): Promise<number> {
  return Number((await readFile(join(directory, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')[0])
}

async function killServer(directory: string): Promise<void> {
  process.kill(await serverPid(directory), 'SIGKILL')
}

async function hasServer(directory: string): Promise<boolean> {
  return access(join(directory, 'postgres', 'data', 'postmaster.pid')).then(
    () => true,
    () => false,
  )
}

test('the embedded database is new at its first start alone', async () => {
  await using later = await startEmbeddedDatabase({ dataDir })
  expect([wasNew, later.isNew]).toEqual([true, false])
})

test('the embedded database keeps what was committed when it is stopped and started again', async () => {
  await using first = await startEmbeddedDatabase({ dataDir })
  await query(first.connectionString, `INSERT INTO kept VALUES ('stopped')`)
  await first.stop()
  await first.stop()
  await using second = await startEmbeddedDatabase({ dataDir })
  expect(await query(second.connectionString, `SELECT word FROM kept WHERE word = 'stopped'`)).toEqual([['stopped']])
})

test('the embedded database is durable, sorts by bytes, vacuums often and takes the settings given', async () => {
  await using database = await startEmbeddedDatabase({ dataDir, settings: { max_connections: '37' } })
  const [row] = await query(
    database.connectionString,
    `SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
        current_setting('server_encoding'), (SELECT datcollate FROM pg_database WHERE datname = current_database()),
        current_setting('autovacuum_naptime'), current_setting('max_connections')`,
  )
  expect(row).toEqual(['on', 'on', 'on', 'UTF8', 'C', '15s', '37'])
})

test('the embedded database lets nobody in without the password, and listens on the loopback address only', async () => {
  await using database = await startEmbeddedDatabase({ dataDir })
  const url = new URL(database.connectionString)
  expect(url.hostname).toBe('127.0.0.1')
  url.password = 'guessed'
  await expect(query(url.href, 'SELECT 1')).rejects.toThrow('password authentication failed')
  const settings = `SELECT current_setting('listen_addresses'), current_setting('unix_socket_directories')`
  expect(await query(database.connectionString, settings)).toEqual([['127.0.0.1', '']])
})

test('the embedded database is not held up by a connection that stays open', async () => {
  await using database = await startEmbeddedDatabase({ dataDir })
  const client = new pg.Client({ connectionString: database.connectionString })
  const cut = Promise.withResolvers<Error>()
  client.on('error', cut.resolve)
  await client.connect()
  await database.stop()
  expect((await cut.promise).message).toBe('terminating connection due to administrator command')
  expect(await hasServer(dataDir)).toBe(false)
})

test('the embedded database tells its log', async () => {
  const lines: string[] = []
  await using _database = await startEmbeddedDatabase({ dataDir, onLog: (line) => lines.push(line) })
  expect(lines.join('\n')).toContain('database system is ready to accept connections')
})

test('the embedded database tells when the server ends and nobody asked it to', async () => {
  const exit = Promise.withResolvers<Error>()
  await using _database = await startEmbeddedDatabase({ dataDir, onUnexpectedExit: exit.resolve })
  await killServer(dataDir)
  expect((await exit.promise).message).toMatch(/^the embedded database ended unexpectedly: .*start again$/)
})

describe('after the process that owned it was killed', () => {
  test('a server whose owner was killed is taken over, and stopped in the end', async () => {
    const owner = await startOwner(dataDir)
    await query(owner.connectionString, `INSERT INTO kept VALUES ('killed')`)
    const pid = await serverPid(dataDir)
    owner.child.kill('SIGKILL')
    await owner.exit

    await using database = await startEmbeddedDatabase({ dataDir })
    expect(await serverPid(dataDir)).toBe(pid)
    expect(await query(database.connectionString, `SELECT word FROM kept WHERE word = 'killed'`)).toEqual([['killed']])
    await database.stop()
    expect(await hasServer(dataDir)).toBe(false)
  })

  test('the next owner is told when the server it took over ends and nobody asked it to', async () => {
    const owner = await startOwner(dataDir)
    owner.child.kill('SIGKILL')
    await owner.exit

    const exit = Promise.withResolvers<Error>()
    await using database = await startEmbeddedDatabase({ dataDir, onUnexpectedExit: exit.resolve })
    const pid = await serverPid(dataDir)
    await killServer(dataDir)
    expect((await exit.promise).message).toBe(
      `the embedded database ended unexpectedly: its process ${pid} is gone; start again`,
    )
    await database.stop()
  })

  test('a server that was killed with its owner comes up with everything committed', async () => {
    const owner = await startOwner(dataDir)
    await query(owner.connectionString, `INSERT INTO kept VALUES ('crashed')`)
    owner.child.kill('SIGKILL')
    await killServer(dataDir)
    await owner.exit

    await using database = await startEmbeddedDatabase({ dataDir })
    const found = await query(database.connectionString, `SELECT word FROM kept WHERE word = 'crashed'`)
    expect(found).toEqual([['crashed']])
  })

  test('a server starts though another process has the number in its stale postmaster.pid', async () => {
    // A process PostgreSQL would take for a server of its own: alive, and of the same user.
    const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
    const other = spawn('sleep', ['60'], user)
    owners.push(other)
    const file = join(dataDir, 'postgres', 'data', 'postmaster.pid')
    await writeFile(file, `${other.pid}\n${dataDir}\n0\n1\n\n127.0.0.1\n\nready\n`, { mode: 0o600 })
    await using database = await startEmbeddedDatabase({ dataDir })
    expect(await query(database.connectionString, 'SELECT 1')).toEqual([[1]])
  })

  test('the files of a database are made anew where their owner was killed while it made them', async () => {
    const fresh = join(parent, 'half done')
    await mkdir(join(fresh, 'postgres.new', 'data', 'base'), { recursive: true })
    await writeFile(join(fresh, 'postgres.new', 'data', 'PG_VERSION'), '18\n')
    await using database = await startEmbeddedDatabase({ dataDir: fresh })
    expect(await query(database.connectionString, 'SELECT 1')).toEqual([[1]])
  })
})

describe('two processes on one directory', () => {
  test('the second service is told who has it, and can have it afterwards', async () => {
    const owner = await startOwner(dataDir)
    await expect(startEmbeddedDatabase({ dataDir })).rejects.toThrow(
      `the data directory ${dataDir} is in use by process ${owner.child.pid}; stop that one first, or set DATA_DIR to another directory`,
    )
    owner.child.stdin?.end()
    await owner.exit
    await using database = await startEmbeddedDatabase({ dataDir })
    expect(await query(database.connectionString, 'SELECT 1')).toEqual([[1]])
  })

  test('a Ctrl-C in the terminal of the owner leaves the server to it', async () => {
    const owner = await startOwner(dataDir)
    process.kill(-(owner.child.pid ?? 0), 'SIGINT')
    expect(await owner.nextLine()).toBe('interrupted')
    expect(await query(owner.connectionString, 'SELECT 1')).toEqual([[1]])
    owner.child.stdin?.end()
    await owner.exit
    expect(await hasServer(dataDir)).toBe(false)
  })

  test('a command joins the server of a service and leaves it running', async () => {
    await using service = await startEmbeddedDatabase({ dataDir })
    const command = await joinEmbeddedDatabase({ dataDir })
    expect(command.connectionString).toBe(service.connectionString)
    await command.stop()
    expect(await query(service.connectionString, 'SELECT 1')).toEqual([[1]])
  })

  test('a command without a service has a server of its own, which does not outlive it', async () => {
    const command = await joinEmbeddedDatabase({ dataDir })
    expect(await query(command.connectionString, 'SELECT 1')).toEqual([[1]])
    await command.stop()
    expect(await hasServer(dataDir)).toBe(false)
  })

  test('a service waits for a command to be done', async () => {
    const command = await joinEmbeddedDatabase({ dataDir })
    const service = startEmbeddedDatabase({ dataDir })
    await query(command.connectionString, 'SELECT 1')
    await command.stop()
    await using database = await service
    expect(await query(database.connectionString, 'SELECT 1')).toEqual([[1]])
  })
})

test('a data directory made by another version of PostgreSQL cannot be used', async () => {
  const file = join(dataDir, 'postgres', 'data', 'PG_VERSION')
  const version = await readFile(file, 'utf8')
  await writeFile(file, '15\n')
  await expect(startEmbeddedDatabase({ dataDir })).rejects.toThrow(/was made by PostgreSQL 15, .* set DATABASE_URL$/)
  await writeFile(file, version)
})

test('a data directory that is a file cannot be used', async () => {
  const file = join(parent, 'file')
  await writeFile(file, '')
  await expect(startEmbeddedDatabase({ dataDir: file })).rejects.toThrow(
    /cannot be written \(EEXIST.*set DATA_DIR to another directory$/,
  )
})

test('a data directory with damaged files cannot be used, and the reason of PostgreSQL is told', async () => {
  const damaged = join(parent, 'damaged')
  await using first = await startEmbeddedDatabase({ dataDir: damaged })
  await first.stop()
  await rm(join(damaged, 'postgres', 'data', 'global', 'pg_control'))
  await expect(startEmbeddedDatabase({ dataDir: damaged })).rejects.toThrow(
    /^the embedded database did not start in .*pg_control/,
  )
})
