import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { freePort } from './free-port.ts'
import { run } from './run.ts'
import { startArguments } from './start-command.ts'

/** A separate service process with an embedded database in a temporary directory. */
export type LiveService = AsyncDisposable & {
  url: string
  /** A live key with full access. */
  apiKey: string
  /** A test key with full access. It may use any sender domain, and no email leaves the machine. */
  testKey: string
  /** Runs a command of the command line on its database. Returns what it prints with `--json`. */
  command(...args: string[]): Promise<unknown>
  /** Kills the process at once (SIGKILL). Its database goes on. */
  kill(): Promise<void>
  /** Starts it again after `kill`, at the same address, and waits until it is ready. */
  restart(): Promise<void>
}

const startTimeoutMs = 60_000

async function untilReady(url: string, exited: Promise<unknown>): Promise<void> {
  const deadline = Date.now() + startTimeoutMs
  const gone = exited.then(() => true)
  while (Date.now() < deadline) {
    const ready = await fetch(`${url}/readyz`).then(
      (response) => response.ok,
      () => false,
    )
    if (ready) return
    if (await Promise.race([gone, delay(100, false)])) throw new Error('the service ended before it was ready')
  }
  throw new Error(`the service was not ready within ${startTimeoutMs / 1000} s`)
}

const createdKey = z.object({ key: z.string() })

/**
 * Starts the service as a user would, with limits that no test reaches, and waits until it is ready. Disposing stops it
 * and deletes its data.
 *
 * @param settings More of its environment.
 *
 * Throws when it does not become ready. Its error output is on stderr.
 */
export async function startLiveService(settings: Record<string, string> = {}): Promise<LiveService> {
  await using cleanup = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-live-'))
  cleanup.defer(() => rm(directory, { recursive: true, force: true }))

  const port = await freePort()
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    HOST: '127.0.0.1',
    PORT: String(port),
    DATA_DIR: directory,
    RATE_LIMITS: 'free=1000000,pro=1000000,scale=1000000',
    AUTH_FAILURES_PER_MINUTE: '1000000',
    LOG_LEVEL: 'warn',
    ...settings,
  }
  delete env.DATABASE_URL
  const url = `http://127.0.0.1:${port}`
  const { options, program } = startArguments()
  let running: { child: ChildProcess; exited: Promise<unknown> } | null = null

  async function start(): Promise<void> {
    const child = spawn(process.execPath, [...options, program], { env, stdio: ['ignore', 'ignore', 'inherit'] })
    const exited = once(child, 'exit')
    running = { child, exited }
    await untilReady(url, exited)
  }

  async function end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    running?.child.kill(signal)
    await running?.exited
    running = null
  }

  cleanup.defer(async () => {
    // A process that was killed has left its database running, which the next one ends.
    if (running === null) await start()
    await end('SIGTERM')
  })
  await start()
  async function command(...args: string[]): Promise<unknown> {
    const { stdout } = await run(process.execPath, ['server/cli/postern.ts', ...args, '--json'], { env, quiet: true })
    return JSON.parse(stdout)
  }
  const createKey = async (mode: 'live' | 'test') =>
    createdKey.parse(await command('keys', 'create', '--mode', mode, '--permission', 'full_access')).key
  const apiKey = await createKey('live')
  const testKey = await createKey('test')
  const started = cleanup.move()
  return {
    url,
    apiKey,
    testKey,
    command,
    kill: () => end('SIGKILL'),
    restart: start,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}
