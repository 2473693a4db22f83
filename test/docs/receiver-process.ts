import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { patienceMs } from '../support/patience.ts'

/** A receiver of the documents, running as it stands. */
export type ReceiverProcess = AsyncDisposable & {
  url: string
  /** Returns its standard output so far. */
  printed(): string
  stop(): Promise<void>
}

export type ReceiverOptions = {
  /** Of Node or Python. */
  program: string
  file: string
  port: number
  secret: string
}

/** Runs the program and waits until it takes connections. */
export async function runReceiver({ program, file, port, secret }: ReceiverOptions): Promise<ReceiverProcess> {
  const child = spawn(program, [file], {
    env: { PATH: process.env.PATH, PORT: String(port), WEBHOOK_SECRET: secret, PYTHONUNBUFFERED: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(child, 'exit')
  let printed = ''
  let complaints = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk
  })
  child.stderr.on('data', (chunk: Buffer) => {
    complaints += chunk
  })
  const deadline = performance.now() + patienceMs
  while (!(await takesConnections(port))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`no receiver runs: ${complaints}`)
    await delay(20)
  }

  async function stop(): Promise<void> {
    child.kill('SIGKILL')
    await exit
  }
  return { url: `http://127.0.0.1:${port}/hooks`, printed: () => printed, stop, [Symbol.asyncDispose]: stop }
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
