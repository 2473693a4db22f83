import { existsSync } from 'node:fs'
import { access, constants, mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode, messageOf } from '../../lib/error-codes.ts'
import { OperatorError } from '../../shared/errors.ts'
import { findBinaries } from './binaries.ts'
import { assertVersion, type Cluster, chooseRunAs, createCluster, readCluster, rootOf } from './cluster.ts'
import { type DataDirLock, type LockOwner, lockFileOf, readLockOwner, tryLockDataDir } from './lock.ts'
import { adoptServer, connectionStringOf, findServer, startServer } from './server.ts'

/** An embedded PostgreSQL, for use without installing one. */
export type EmbeddedDatabase = AsyncDisposable & {
  connectionString: string
  /** True: its files were created by this call. */
  isNew: boolean
  /** Stops the server if this process owns it, and waits for its end. Calling it again does nothing. */
  stop(): Promise<void>
}

export type EmbeddedDatabaseOptions = {
  /** The directory of all files. It is created if it is missing. */
  dataDir: string
  /** Settings of PostgreSQL. They apply to a server that is started, not to one found running. */
  settings?: Record<string, string>
  /** Called with each line of the server's log. Default: the log is dropped, but errors contain its last lines. */
  onLog?: (line: string) => void
  /** Called when the server ends without `stop`. Default: nothing happens; queries fail. */
  onUnexpectedExit?: (error: OperatorError) => void
  /** Called when a program of PostgreSQL runs that takes its time: first the one that creates the files, if needed. */
  onProgram?: (() => void) | undefined
}

/**
 * Settings of PostgreSQL that differ from its defaults. Outbox and jobs are inserted and deleted all the time, and the
 * space of deleted rows should be reused before as much is written again: vacuum every few seconds.
 */
const ownSettings = { autovacuum_naptime: '15s' } as const

const pollMs = 100
/** How long to wait for another command to end, or for a service to start its server. */
const patienceMs = 30_000

/**
 * Starts the PostgreSQL of `dataDir` for the service; created on first use. This process owns it until `stop()`. A
 * server whose owner was killed is taken over. It listens on 127.0.0.1 only, requires its random password, and is as
 * durable as PostgreSQL is by default.
 *
 * Throws OperatorError with advice when another process has locked the directory, it cannot be written, another version
 * created it, or PostgreSQL does not run here.
 */
export async function startEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
  const dataDir = await prepare(options.dataDir)
  const deadline = performance.now() + patienceMs
  for (;;) {
    const lock = await tryLockDataDir(dataDir, 'service')
    if (lock !== null) return own({ ...options, dataDir, isNewAllowed: true }, lock)
    const owner = await readLockOwner(dataDir)
    // A command ends soon.
    if (owner?.purpose !== 'command' || performance.now() > deadline) throw inUse(dataDir, owner)
    await delay(pollMs)
  }
}

/**
 * Returns the PostgreSQL of `dataDir` for a command: that of a running service, or, if none runs, one started for the
 * command until `stop()`. The server of a running service is left alone.
 *
 * Throws OperatorError like `startEmbeddedDatabase`, and when no service has created a database yet: a database created
 * for a command would be a second installation by mistake. In that case nothing is written.
 */
export async function joinEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
  const wanted = resolve(options.dataDir)
  // A first start creates the lock before anything else.
  if ((await isMissing(lockFileOf(wanted))) && (await isMissing(rootOf(wanted)))) throw noDatabase(wanted)
  const dataDir = await prepare(wanted)
  const deadline = performance.now() + patienceMs
  for (;;) {
    const lock = await tryLockDataDir(dataDir, 'command')
    if (lock !== null) return own({ ...options, dataDir, isNewAllowed: false }, lock)
    const owner = await readLockOwner(dataDir)
    if (owner?.purpose === 'service') {
      const cluster = await readCluster(dataDir, await chooseRunAs(dataDir))
      const server = cluster === null ? null : await findServer(cluster)
      if (cluster !== null && server !== null) return guest(cluster, server.port)
    }
    if (performance.now() > deadline) throw inUse(dataDir, owner)
    await delay(pollMs)
  }
}

async function prepare(dataDir: string): Promise<string> {
  const absolute = resolve(dataDir)
  try {
    await makeDirectory(absolute)
    await access(absolute, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new OperatorError(
      `the data directory ${absolute} cannot be written (${messageOf(error)}); make it writable for this user, or set DATA_DIR to another directory`,
      { cause: error },
    )
  }
  return absolute
}

/**
 * Creates a directory and its parents. Node's `recursive` option never returns where the file system lets nothing be
 * created and reports ENOENT, as /proc and automounters do.
 */
async function makeDirectory(path: string): Promise<void> {
  const parent = dirname(path)
  if (!existsSync(parent)) await makeDirectory(parent)
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST') || !(await stat(path)).isDirectory()) throw error
  }
}

async function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    (error) => hasCode(error, 'ENOENT'),
  )
}

type OwnOptions = EmbeddedDatabaseOptions & {
  /** True to create a database if there is none. */
  isNewAllowed: boolean
}

async function own(options: OwnOptions, lock: DataDirLock): Promise<EmbeddedDatabase> {
  try {
    const { dataDir, onUnexpectedExit = () => undefined, onProgram: onStart } = options
    const runAs = await chooseRunAs(dataDir)
    const existing = await readCluster(dataDir, runAs)
    if (existing === null && !options.isNewAllowed) throw noDatabase(dataDir)
    const found = existing === null ? null : await findServer(existing)
    if (existing !== null && found !== null) {
      const adopted = adoptServer({ cluster: existing, found, onUnexpectedExit })
      return owned({ connectionString: connectionStringOf(existing, adopted.port), isNew: false }, adopted.stop, lock)
    }
    const binaries = await findBinaries(runAs)
    const cluster = existing ?? (await createCluster({ dataDir, binaries, runAs, onStart }))
    await assertVersion(cluster, binaries)
    const server = await startServer({
      cluster,
      binaries,
      runAs,
      settings: { ...ownSettings, ...options.settings },
      onStart,
      onLog: options.onLog ?? (() => undefined),
      onUnexpectedExit,
    })
    const made = { connectionString: connectionStringOf(cluster, server.port), isNew: existing === null }
    return owned(made, server.stop, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

function owned(
  made: Pick<EmbeddedDatabase, 'connectionString' | 'isNew'>,
  stopServer: () => Promise<void>,
  lock: DataDirLock,
): EmbeddedDatabase {
  async function stop(): Promise<void> {
    await stopServer()
    lock.release()
  }
  return { ...made, stop, [Symbol.asyncDispose]: stop }
}

function guest(cluster: Cluster, port: number): EmbeddedDatabase {
  const stop = async () => undefined
  return { connectionString: connectionStringOf(cluster, port), isNew: false, stop, [Symbol.asyncDispose]: stop }
}

function noDatabase(dataDir: string): OperatorError {
  return new OperatorError(
    `there is no embedded database in ${dataDir}; start the service once, or set DATA_DIR or DATABASE_URL as the service has it`,
  )
}

function inUse(dataDir: string, owner: LockOwner | null): OperatorError {
  const by = owner === null ? 'another process' : `process ${owner.pid}`
  return new OperatorError(
    `the data directory ${dataDir} is in use by ${by}; stop that one first, or set DATA_DIR to another directory`,
  )
}
