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

/** A PostgreSQL of our own, for use without installing one. */
export type EmbeddedDatabase = AsyncDisposable & {
  connectionString: string
  /** Ends the server, if this process owns it, and waits for its end. Calling it again does nothing. */
  stop(): Promise<void>
}

export type EmbeddedDatabaseOptions = {
  /** Everything is kept here; made if it is missing. */
  dataDir: string
  /** Settings of PostgreSQL, for a server that is started, not found running. */
  settings?: Record<string, string>
  /** Given each line of the server's log. Default: nowhere, but the last lines stand in errors. */
  onLog?: (line: string) => void
  /** Told when the server ends and nobody asked it to. Default: nobody; queries fail. */
  onUnexpectedExit?: (error: OperatorError) => void
}

/**
 * Settings of PostgreSQL that are not its defaults. Outbox and jobs are written and deleted all the time, and
 * what retention deletes is to be used again before as much is written anew: vacuum every few seconds.
 */
const ownSettings = { autovacuum_naptime: '15s' } as const

const pollMs = 100
/** How long to wait for somebody else's command to end, or for a service to have started its server. */
const patienceMs = 30_000

/**
 * Starts the PostgreSQL of `dataDir`, made on first use, for the service: this process owns it until
 * `stop()`. A server that outlived a killed owner is taken over. It listens on 127.0.0.1 only, lets
 * nobody in without its random password, and is as durable as PostgreSQL is by default.
 *
 * Throws OperatorError, with what to do, when another process has the directory, it cannot be
 * written, another version made it, or PostgreSQL does not run here.
 */
export async function startEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
  const dataDir = await prepare(options.dataDir)
  const deadline = performance.now() + patienceMs
  for (;;) {
    const lock = await tryLockDataDir(dataDir, 'service')
    if (lock !== null) return own({ ...options, dataDir, isNewAllowed: true }, lock)
    const owner = await readLockOwner(dataDir)
    // A command is done in a moment.
    if (owner?.purpose !== 'command' || performance.now() > deadline) throw inUse(dataDir, owner)
    await delay(pollMs)
  }
}

/**
 * The PostgreSQL of `dataDir` for a command: the one a running service has started, or, when none
 * runs, one of its own until `stop()`. Leaves a running service's server alone.
 *
 * Throws OperatorError as `startEmbeddedDatabase` does, and where no service has made a database yet: one
 * made for a command would be a second installation by mistake. Nothing is written there.
 */
export async function joinEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
  const wanted = resolve(options.dataDir)
  // The lock is what a first start makes before anything else.
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
 * Makes a directory and those it is in. Not by the `recursive` of Node, which never ends where the
 * file system lets nothing be made and says ENOENT, as that of /proc and automounters do.
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
  /** Whether a database is made where there is none. */
  isNewAllowed: boolean
}

async function own(options: OwnOptions, lock: DataDirLock): Promise<EmbeddedDatabase> {
  try {
    const { dataDir, onUnexpectedExit = () => undefined } = options
    const runAs = await chooseRunAs(dataDir)
    const existing = await readCluster(dataDir, runAs)
    if (existing === null && !options.isNewAllowed) throw noDatabase(dataDir)
    const found = existing === null ? null : await findServer(existing)
    if (existing !== null && found !== null) {
      const adopted = adoptServer({ cluster: existing, found, onUnexpectedExit })
      return owned(connectionStringOf(existing, adopted.port), adopted.stop, lock)
    }
    const binaries = await findBinaries(runAs)
    const cluster = existing ?? (await createCluster({ dataDir, binaries, runAs }))
    await assertVersion(cluster, binaries)
    const server = await startServer({
      cluster,
      binaries,
      runAs,
      settings: { ...ownSettings, ...options.settings },
      onLog: options.onLog ?? (() => undefined),
      onUnexpectedExit,
    })
    return owned(connectionStringOf(cluster, server.port), server.stop, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

function owned(connectionString: string, stopServer: () => Promise<void>, lock: DataDirLock): EmbeddedDatabase {
  async function stop(): Promise<void> {
    await stopServer()
    lock.release()
  }
  return { connectionString, stop, [Symbol.asyncDispose]: stop }
}

function guest(cluster: Cluster, port: number): EmbeddedDatabase {
  const stop = async () => undefined
  return { connectionString: connectionStringOf(cluster, port), stop, [Symbol.asyncDispose]: stop }
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
