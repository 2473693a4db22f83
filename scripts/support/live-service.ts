import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { run } from './run.ts'
import { startArguments } from './start-command.ts'

/** A separate service process with an embedded database in a temporary directory. */
export type LiveService = AsyncDisposable & {
  url: string
  /** A live key with full access. */
  apiKey: string
  /** A test key with full access. It may use any sender domain, and no email leaves the machine. */
  testKey: string
}

const startTimeoutMs = 60_000

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port of this machine is free')
  server.close()
  await once(server, 'close')
  return address.port
}

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

async function createKey(mode: 'live' | 'test', env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['server/cli/postern.ts', 'keys', 'create', '--mode', mode, '--permission', 'full_access', '--json']
  const { stdout } = await run(process.execPath, args, { env, quiet: true })
  return z.object({ key: z.string() }).parse(JSON.parse(stdout)).key
}

/**
 * Starts the service as a user would, with limits that no test reaches, and waits until it is ready. Disposing stops it
 * and deletes its data.
 *
 * Throws when it does not become ready. Its error output is on stderr.
 */
export async function startLiveService(): Promise<LiveService> {
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
  }
  delete env.DATABASE_URL
  const { options, program } = startArguments()
  const child = spawn(process.execPath, [...options, program], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  cleanup.defer(async () => {
    child.kill('SIGTERM')
    await exited
  })

  const url = `http://127.0.0.1:${port}`
  await untilReady(url, exited)
  const apiKey = await createKey('live', env)
  const testKey = await createKey('test', env)
  const running = cleanup.move()
  return { url, apiKey, testKey, [Symbol.asyncDispose]: () => running.disposeAsync() }
}
