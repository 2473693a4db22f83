import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import type { Processes, ProgramOptions, Running } from './processes.ts'

/* Starts programs on a fresh data directory, and measures the time until they listen. */

/** A program that listens. Disposing stops it and deletes its data. */
export type Started = AsyncDisposable & {
  url: string
  /** From the start of the process to the first connection that is accepted. Milliseconds. */
  listeningMs: number
  /** Returns the time since the start of the process. Milliseconds. */
  sinceStart(): number
  running: Running
}

export type StartedService = Started & {
  /** The token of the link that makes the first user. */
  linkToken: string
}

const pollMs = 5
const stopTimeoutMs = 20_000

type Place = { dataDir: string; port: number }

/** Starts a program that `optionsOf` describes for a data directory and a port of 127.0.0.1. */
async function startFresh(processes: Processes, optionsOf: (place: Place) => ProgramOptions): Promise<Started> {
  await using starting = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-start-'))
  starting.defer(() => rm(directory, { recursive: true, force: true }))
  const port = await freePort()
  const dataDir = join(directory, 'data')
  const options = optionsOf({ dataDir, port })
  const given = new AbortController()
  const began = performance.now()
  const listening = untilListening(port, given.signal).then(() => performance.now() - began)
  try {
    const running = await processes.start(options)
    starting.defer(() =>
      untilEnded(() => existsSync(join(dataDir, 'postgres', 'data', 'postmaster.pid')), `the database in ${dataDir}`),
    )
    // npm ends before the service, which writes what it compiled as the last thing it does.
    starting.defer(() => untilEnded(() => groupRuns(running.pid), options.name))
    starting.use(running)
    // All processes of the program: npm does not wait for the service, nor does it always hand the signal on.
    starting.defer(() => void process.kill(-running.pid, 'SIGTERM'))
    const listeningMs = await listening
    const started = starting.move()
    const url = `http://127.0.0.1:${port}`
    const sinceStart = () => performance.now() - began
    return { url, listeningMs, sinceStart, running, [Symbol.asyncDispose]: () => started.disposeAsync() }
  } finally {
    given.abort()
  }
}

/** Waits until `runs` says that `name` has ended. */
async function untilEnded(runs: () => boolean, name: string): Promise<void> {
  const deadline = performance.now() + stopTimeoutMs
  while (runs()) {
    if (performance.now() > deadline) throw new Error(`${name} did not end`)
    await delay(pollMs)
  }
}

/** Returns whether a process of the group runs that `leader` leads. */
function groupRuns(leader: number): boolean {
  try {
    return process.kill(-leader, 0)
  } catch {
    return false
  }
}

/** Resolves when something accepts connections at `port`, or when `signal` aborts. */
async function untilListening(port: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await accepts(port))) await delay(pollMs)
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Matches the lines that npm and a first start print. */
const usualLine =
  /^(> | {2}|This is the first start|It has two keys|Try one:|Postern listens|No email leaves|Webhooks may|The dashboard is being)/

/** Runs `npm start` with the embedded database in a fresh directory, and with additional variables in `env`. */
export async function startWithNpm(
  processes: Processes,
  name: string,
  env: Readonly<Record<string, string>> = {},
): Promise<StartedService> {
  const npm = process.env.npm_execpath
  if (npm === undefined) throw new Error('there is no npm_execpath: run the benchmark as "npm run bench -- start"')
  const started = await startFresh(processes, ({ dataDir, port }) => ({
    name: `npm of ${name}`,
    childrenName: name,
    file: npm,
    args: ['start'],
    env: {
      HOME: process.env.HOME,
      npm_config_update_notifier: 'false',
      HOST: '127.0.0.1',
      PORT: String(port),
      DATA_DIR: dataDir,
      LOG_LEVEL: 'warn',
      ...env,
    },
    readyLine: /\/app\/accept#token=(\S+)/,
    usualLine,
  }))
  const linkToken = started.running.ready?.[1]
  if (linkToken === undefined) throw new Error('the service did not print the link of the first user')
  return { ...started, linkToken }
}

/** Starts the baseline: see `programs/bare-start.ts`. */
export function startBare(processes: Processes, name: string): Promise<Started> {
  return startFresh(processes, ({ dataDir, port }) => ({
    name,
    childrenName: `database of ${name}`,
    file: import.meta.resolve('./programs/bare-start.ts'),
    args: [dataDir, String(port)],
    env: { NODE_ENV: 'production' },
  }))
}
