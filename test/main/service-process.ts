import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { joinEmbeddedDatabase } from '../../server/database/embedded/start.ts'
import { compileCache } from '../support/compile-cache.ts'

const root = join(import.meta.dirname, '..', '..')

/** Settings of the service. Nothing of the environment of the tests reaches it. */
export type Env = Record<string, string>

/** A service that runs as a process of its own, as an operator would start it. */
export type ServiceProcess = AsyncDisposable & {
  child: ChildProcess
  url: string
  /** Its output on stdout until it was ready. */
  greeting: string
  /** The lines it prints, as they come. */
  lines: readonly string[]
  /** Its output on stderr, once it has ended. */
  stderr: Promise<string>
  /** Its end. */
  exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

const isReady = /^Postern listens on (\S+),/

export type ProcessOptions = {
  nodeArgs?: readonly string[]
  /** Of the sources. Default: these. */
  directory?: string
  /** Default: `server/main.ts`. */
  program?: string
}

/** Starts the service on a free port and waits until it listens. Disposing kills it, with its database. */
export async function startService(
  env: Env,
  { nodeArgs = [], directory = root, program = 'server/main.ts' }: ProcessOptions = {},
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [...nodeArgs, program], {
    cwd: directory,
    env: { ...compileCache, PORT: '0', LOG_LEVEL: 'silent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  const stderr = text(child.stderr)
  const lines: string[] = []
  const url = await new Promise<string | undefined>((resolve) => {
    const output = createInterface(child.stdout)
    output.on('line', (line) => {
      lines.push(line)
      const [, found] = isReady.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
    output.once('close', () => resolve(undefined))
  })
  if (url === undefined) throw new Error(`the service did not start: ${await stderr}`)
  return {
    child,
    url,
    greeting: lines.join('\n'),
    lines,
    stderr,
    exit,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exit
      await stopLeftServer(env.DATA_DIR)
    },
  }
}

/** Ends the database that a killed service has left running. */
async function stopLeftServer(dataDir: string | undefined): Promise<void> {
  if (dataDir === undefined || !existsSync(join(dataDir, 'postgres', 'data', 'postmaster.pid'))) return
  const database = await joinEmbeddedDatabase({ dataDir })
  await database.stop()
}

/** Runs the service to an end that must come by itself. */
export async function runService(env: Env) {
  return runNode(['server/main.ts'], { PORT: '0', LOG_LEVEL: 'silent', ...env })
}

/** Runs a program of this project to its end. */
export async function runNode(args: string[], env: Env) {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [exitCode]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { stdout, stderr, exitCode: Number(exitCode) }
}
