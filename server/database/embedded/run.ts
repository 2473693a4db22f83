import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'

/** The user that PostgreSQL runs as, if it is not the user of this process. */
export type RunAs = { uid: number; gid: number }

export type Program = {
  path: string
  args: readonly string[]
  cwd: string
  /** Undefined: the user of this process. */
  runAs: RunAs | undefined
  /** Called when the program runs. */
  onStart?: (() => void) | undefined
}

/** How a program ended, with the last lines it wrote to stdout and stderr. */
export type Ended = { code: number | null; lines: readonly string[] }

const keptLines = 40
const keptLineLength = 1000

/** The last lines of a program's output. Earlier lines are dropped. */
export class Tail {
  readonly lines: string[] = []
  readonly #onLine: ((line: string) => void) | undefined
  #rest = ''

  constructor(onLine?: (line: string) => void) {
    this.#onLine = onLine
  }

  add(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = (lines.pop() ?? '').slice(0, keptLineLength)
    for (const line of lines) this.#push(line)
  }

  end(): void {
    if (this.#rest !== '') this.#push(this.#rest)
    this.#rest = ''
  }

  #push(line: string): void {
    const kept = line.trimEnd().slice(0, keptLineLength)
    if (kept === '') return
    this.lines.push(kept)
    if (this.lines.length > keptLines) this.lines.shift()
    this.#onLine?.(kept)
  }
}

/**
 * Starts a program of PostgreSQL in a session of its own, so that a Ctrl-C in the terminal does not reach it, without
 * our environment variables. Its output goes to `tail`.
 */
export function startProgram(program: Program, tail: Tail): { child: ChildProcess; ended: Promise<Ended> } {
  const options: SpawnOptions = {
    cwd: program.cwd,
    detached: true,
    env: { LC_ALL: 'C', TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...program.runAs,
  }
  const child = spawn(program.path, program.args, options)
  child.once('spawn', () => program.onStart?.())
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => tail.add(chunk))
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      tail.end()
      resolve({ code, lines: tail.lines })
    })
  })
  return { child, ended }
}

/** Runs a program to its end. Rejects only if it cannot be started. */
export async function runProgram(program: Program): Promise<Ended> {
  return startProgram(program, new Tail()).ended
}
