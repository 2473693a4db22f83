import { readFileSync } from 'node:fs'
import { readFile, readlink, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../../lib/error-codes.ts'
import { OperatorError } from '../../shared/errors.ts'
import type { Binaries } from './binaries.ts'
import type { Cluster } from './cluster.ts'
import { type Ended, type RunAs, startProgram, Tail } from './run.ts'

/** A server of a cluster that is running and accepts connections. */
export type FoundServer = { pid: number; port: number }

/** A server that this process is responsible for. */
export type RunningServer = FoundServer & {
  /**
   * Shuts the server down and waits for its end. Connections still open after a second are terminated, and their
   * transactions rolled back.
   */
  stop(): Promise<void>
}

export type StartServerOptions = {
  cluster: Cluster
  binaries: Binaries
  runAs: RunAs | undefined
  settings: Record<string, string>
  /** Called when its process runs, which does not accept connections yet. */
  onStart: (() => void) | undefined
  onLog: (line: string) => void
  /** Called when the server ends without `stop`. */
  onUnexpectedExit: (error: OperatorError) => void
}

export type AdoptServerOptions = Pick<StartServerOptions, 'cluster' | 'onUnexpectedExit'> & { found: FoundServer }

const pollMs = 50
/** Milliseconds between two checks of an adopted server. */
const watchMs = 1_000
/** Time for a running server to finish starting or stopping, crash recovery included. */
const settleTimeoutMs = 60_000
/** Time for the connections of a stopping server to end by themselves. */
const graceMs = 1_000
const maxStarts = 5
/** Failures that another process can cause between our check and our start, and that soon pass. */
const passingFailure = /Address already in use|could not create any TCP\/IP sockets|pre-existing shared memory block/

export function connectionStringOf(cluster: Cluster, port: number): string {
  return `postgres://${cluster.user}:${cluster.password}@127.0.0.1:${port}/postgres`
}

/** Starts the server of a cluster that has none, on a free port of 127.0.0.1. */
export async function startServer(options: StartServerOptions): Promise<RunningServer> {
  for (let start = 1; ; start++) {
    const port = await freePort()
    const result = await startOnPort(options, port)
    if ('server' in result) return result.server
    const reason = result.failed.lines.slice(-5).join(' ')
    if (start === maxStarts || !passingFailure.test(reason)) {
      throw new OperatorError(
        `the embedded database did not start in ${options.cluster.directory}: ${reason || `exit code ${result.failed.code}`}`,
      )
    }
    await delay(200 * start)
  }
}

async function startOnPort(
  options: StartServerOptions,
  port: number,
): Promise<{ server: RunningServer } | { failed: Ended }> {
  const { cluster, binaries, runAs, onStart } = options
  let ready: () => void = () => undefined
  const isReady = new Promise<void>((resolve) => {
    ready = resolve
  })
  const tail = new Tail((line) => {
    if (line.includes('database system is ready to accept connections')) ready()
    options.onLog(line)
  })
  const settings = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...options.settings }
  const args = ['-D', cluster.argument, '-p', String(port)]
  for (const [name, value] of Object.entries(settings)) args.push('-c', `${name}=${value}`)
  const program = { path: binaries.postgres, args, cwd: cluster.directory, runAs, onStart }
  const { child, ended } = startProgram(program, tail)

  const first = await Promise.race([isReady, ended])
  if (first !== undefined) return { failed: first }
  const pid = child.pid
  if (pid === undefined) throw new Error('the embedded database has no process id')
  let stopping: Promise<void> | undefined
  void ended.then(({ code, lines }) => {
    if (stopping !== undefined) return
    stopping = Promise.resolve()
    options.onUnexpectedExit(unexpectedExit(lines.slice(-3).join(' ') || `exit code ${code}`))
  })
  const stop = () => {
    stopping ??= shutDown(pid, () => ended.then(() => undefined))
    return stopping
  }
  return { server: { pid, port, stop } }
}

function unexpectedExit(reason: string): OperatorError {
  return new OperatorError(`the embedded database ended unexpectedly: ${reason}; start again`)
}

/**
 * Returns the server of a cluster that is already running, for example after the process that started it was killed.
 * Null: there is none. Waits for a server that is starting or stopping. A server that accepts our password is the right
 * one.
 */
export async function findServer(cluster: Cluster): Promise<FoundServer | null> {
  const deadline = performance.now() + settleTimeoutMs
  for (;;) {
    const found = await readPidFile(cluster)
    if (found === null) return null
    if (await answers(cluster, found.port)) return found
    const isOurs = await isServerOf(found.pid, cluster)
    if (isOurs === 'no') {
      // The process id now belongs to another process. PostgreSQL would refuse to start because of it.
      await rm(join(cluster.directory, 'postmaster.pid'), { force: true })
      return null
    }
    // Not known: PostgreSQL finds out by itself when it is started.
    if (isOurs === 'unknown') return null
    if (performance.now() > deadline) {
      throw new OperatorError(
        `the embedded database runs as process ${found.pid} but does not answer; end that process and start again`,
      )
    }
    await delay(pollMs)
  }
}

/**
 * Takes responsibility for a server that was found. It is no child process of ours, so its end is not reported: its
 * process is checked every second.
 */
export function adoptServer({ cluster, found, onUnexpectedExit }: AdoptServerOptions): RunningServer {
  let stopping: Promise<void> | undefined
  const watch = setInterval(() => {
    if (isAlive(found.pid)) return
    clearInterval(watch)
    stopping = Promise.resolve()
    onUnexpectedExit(unexpectedExit(`its process ${found.pid} is gone`))
  }, watchMs).unref()
  const stop = () => {
    clearInterval(watch)
    stopping ??= shutDown(found.pid, () => untilGone(cluster, found.pid))
    return stopping
  }
  return { ...found, stop }
}

/** Source: PostgreSQL documentation, "Database File Layout": the lines of postmaster.pid. */
async function readPidFile(cluster: Cluster): Promise<FoundServer | null> {
  const text = await readFile(join(cluster.directory, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  const port = Number(lines[3])
  return pid > 1 && port > 0 && port < 65_536 ? { pid, port } : null
}

async function answers(cluster: Cluster, port: number): Promise<boolean> {
  // Loaded only here: before a new database is created, as little as possible is loaded.
  const { default: pg } = await import('pg')
  const client = new pg.Client({
    connectionString: connectionStringOf(cluster, port),
    connectionTimeoutMillis: 2_000,
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('SELECT 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => undefined)
  }
}

async function isServerOf(pid: number, cluster: Cluster): Promise<'yes' | 'no' | 'unknown'> {
  if (!isAlive(pid)) return 'no'
  if (process.platform !== 'linux') return 'unknown'
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(cluster.directory)) ? 'yes' : 'no'
  } catch (error) {
    // The process of another user, whose directory we may not see; that of our server we may.
    return hasCode(error, 'EACCES', 'ENOENT') ? 'no' : 'unknown'
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
  return !isZombie(pid)
}

/**
 * Returns true if a process has ended but its process id is not free yet: its parent does not wait for it, like process
 * 1 of many containers.
 *
 * Source: proc_pid_stat(5): the state follows the name, which is in parentheses and may contain parentheses.
 */
function isZombie(pid: number): boolean {
  if (process.platform !== 'linux') return false
  try {
    return /^.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/**
 * Sends SIGTERM, which waits for connections to end; our pools are about to close theirs. Then SIGINT, which terminates
 * the remaining ones. SIGQUIT is the last resort: a crash that PostgreSQL recovers from.
 *
 * Source: PostgreSQL documentation, "Shutting Down the Server".
 */
async function shutDown(pid: number, untilEnd: () => Promise<void>): Promise<void> {
  signal(pid, 'SIGTERM')
  const end = untilEnd()
  const cut = setTimeout(() => signal(pid, 'SIGINT'), graceMs)
  const crash = setTimeout(() => signal(pid, 'SIGQUIT'), settleTimeoutMs)
  await end
  clearTimeout(cut)
  clearTimeout(crash)
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    // The process has ended already.
    if (!hasCode(error, 'ESRCH')) throw error
  }
}

async function untilGone(cluster: Cluster, pid: number): Promise<void> {
  while (isAlive(pid) && (await readPidFile(cluster))?.pid === pid) await delay(pollMs)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no free port on 127.0.0.1')
  return address.port
}
