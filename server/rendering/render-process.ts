import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createFrameReader, type RenderRequest, type RenderResult, readResult, writeRequest } from './frames.ts'

/**
 * How a run ended: all items are done, a limit of the request was reached before the next one, the next one took too
 * long, or the process ended during it.
 */
export type RunEnd = 'complete' | 'limited' | 'late' | 'ended'

/** A process that renders, and nothing else. */
export type RenderProcess = {
  pid: number
  /** The options of Node that it runs with. */
  flags: readonly string[]
  /**
   * Works on the items of a request. Returns the results up to the end of the run, in order. After `late` and `ended`
   * the process is gone. One run at a time.
   */
  run(request: RenderRequest, itemLimitMs: number): Promise<{ results: RenderResult[]; end: RunEnd }>
  /** Returns true until the process has ended. */
  isAlive(): boolean
  /** Ends the process at once. Resolves when it has ended. */
  stop(): Promise<void>
}

export type RenderProcessOptions = {
  /** Maximum heap of the process. MiB. */
  heapMebibytes: number
  /** Time limit for the start of the process. Milliseconds. */
  startLimitMs: number
}

/** Bytes that are kept of what a process says about its end. */
const maxWords = 2_000

/**
 * Starts a rendering process. It has no environment, and Node's permission model leaves it nothing but to read its own
 * program: no other files, no processes, no threads, no add-ons. It ends when this process does.
 *
 * Rejects when it does not become ready.
 */
export async function startRenderProcess(options: RenderProcessOptions): Promise<RenderProcess> {
  const flags = flagsOf(options)
  const child = spawn(process.execPath, [...flags, program], { env: {}, stdio: ['pipe', 'pipe', 'pipe'] })
  const read = createFrameReader()
  let words = ''
  let hasEnded = false
  /** Receives the next frames. Null: nothing waits for them. */
  let listener: { onFrame: (body: Buffer) => void; onEnd: () => void } | null = null

  const ended = new Promise<void>((resolve) => {
    const end = () => {
      hasEnded = true
      listener?.onEnd()
      resolve()
    }
    // After all that it wrote has been read.
    child.once('close', end)
    child.once('error', (error) => {
      words = error.message
      end()
    })
  })
  child.stdout.on('data', (chunk: Buffer) => {
    for (const body of read(chunk)) listener?.onFrame(body)
  })
  child.stderr.on('data', (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(0, maxWords)
  })
  // Its end is told by `close`; writing to it then fails.
  child.stdin.on('error', () => undefined)

  /** Collects `count` frames, and ends the process if one takes longer than `limitMs`. */
  async function collect(count: number, limitMs: number): Promise<{ results: RenderResult[]; end: RunEnd }> {
    const results: RenderResult[] = []
    if (hasEnded) return { results, end: 'ended' }
    let isLate = false
    let progress = performance.now()
    const end = await new Promise<RunEnd>((resolve) => {
      const check = () => {
        if (listener === null) return
        const leftMs = progress + limitMs - performance.now()
        if (leftMs > 0) timer = setTimeout(beforeCheck, leftMs)
        else {
          isLate = true
          child.kill('SIGKILL')
        }
      }
      // If this process was busy, the frame may be there and not be read yet.
      const beforeCheck = () => void setImmediate(check)
      let timer = setTimeout(beforeCheck, limitMs)
      const settle = (how: RunEnd) => {
        clearTimeout(timer)
        listener = null
        resolve(how)
      }
      listener = {
        onFrame(body) {
          const result = readResult(body)
          if (result === null) return settle('limited')
          results.push(result)
          progress = performance.now()
          if (results.length === count) settle('complete')
        },
        onEnd: () => settle(isLate ? 'late' : 'ended'),
      }
    })
    return { results, end }
  }

  async function stop(): Promise<void> {
    child.kill('SIGKILL')
    await ended
  }

  const { end } = await collect(1, options.startLimitMs)
  if (end !== 'complete') {
    await stop()
    throw new Error(`A rendering process did not start (${end}): ${words.trim() || 'it said nothing'}`)
  }
  return {
    pid: child.pid ?? 0,
    flags,
    run(request, itemLimitMs) {
      if (request.items.length === 0) return Promise.resolve({ results: [], end: 'complete' })
      child.stdin.write(writeRequest(request))
      return collect(request.items.length, itemLimitMs)
    },
    isAlive: () => !hasEnded,
    stop,
  }
}

const program = fileURLToPath(new URL('./child.ts', import.meta.url))

function flagsOf({ heapMebibytes }: RenderProcessOptions): string[] {
  const paths = readable().map((path) => `--allow-fs-read=${path}`)
  return [`--max-old-space-size=${heapMebibytes}`, '--permission', ...paths]
}

/** Returns the paths that a rendering process may read: this room, and the packages. */
function readable(): string[] {
  const room = dirname(program)
  const lookedIn = createRequire(import.meta.url).resolve.paths('liquidjs') ?? []
  const packages = lookedIn.find((folder) => existsSync(join(folder, 'liquidjs')))
  if (packages === undefined) throw new Error('The package liquidjs is not installed. Run "npm ci".')
  // Node reads a package under both names where its folder is a link.
  const folders = new Set([packages, realpathSync(packages)])
  return [join(room, '*'), ...[...folders].map((folder) => join(folder, '*')), join(dirname(packages), 'package.json')]
}
