import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { canReadProc, type Usage, usageOf, usageOfDescendants } from './usage.ts'

/** A Node program that a benchmark runs as a child process. */
export type ProgramOptions = {
  /** Name in the results. The usage of programs with the same name is added up. */
  name: string
  /** The path or URL of the file. */
  file: string
  args?: readonly string[]
  /** Options of Node. */
  nodeArgs?: readonly string[]
  env?: Readonly<Record<string, string | undefined>>
  /** Matches the output line that shows that it is ready. Default: the message that `serve` sends. */
  readyLine?: RegExp
  /** Matches other expected output lines. Default: none. */
  usualLine?: RegExp
  /** Reports the usage of its child processes under this name, such as those of a database. Linux only. */
  childrenName?: string
}

export type Running = AsyncDisposable & {
  readonly pid: number
  /** The match of `readyLine`. */
  readonly ready: RegExpExecArray | null
  /** Calls a method of the program and validates the result. Rejects when the program ends before. */
  ask<T extends z.ZodType>(method: string, params: unknown, answer: T): Promise<z.output<T>>
  /** Returns its present memory in bytes. */
  memory(): Promise<number>
  /** Stops it and waits for its end. Safe to call again. */
  stop(): Promise<void>
}

/** The programs of one benchmark. Disposing stops all of them, the last one started first. */
export type Processes = AsyncDisposable & {
  start(options: ProgramOptions): Promise<Running>
  /** Returns the first unexpected output lines of each program. */
  complaints(): readonly string[]
  /** Returns the usage of all programs so far, also of those that have ended, by name. */
  usage(): Promise<Map<string, Usage>>
}

const startTimeoutMs = 60_000
/** Long, because a service needs time to stop in order. */
const stopTimeoutMs = 45_000
const keptComplaints = 20
const samplingMs = 1_000

const leash = import.meta.resolve('./programs/leash.ts')
const answerMessage = z.object({ id: z.number(), result: z.unknown().optional(), error: z.string().optional() })
const usageMessage = z.object({
  usage: z.object({ cpuSeconds: z.number(), peakBytes: z.number() }),
  bytes: z.number(),
})

export function createProcesses(): Processes {
  const running = new Map<Running, { name: string; childrenName: string | undefined; child: ChildProcess }>()
  const ended = new Map<string, Usage>()
  const peaks = new Map<string, number>()
  const complaints: string[] = []
  let stopping = false

  const sampler = setInterval(() => void sampleChildren(), samplingMs)
  sampler.unref()

  async function sampleChildren(): Promise<void> {
    for (const [{ pid }, { childrenName }] of running) {
      if (childrenName === undefined || !canReadProc) continue
      const { bytes } = await usageOfDescendants(pid)
      peaks.set(childrenName, Math.max(peaks.get(childrenName) ?? 0, bytes))
    }
  }

  async function usagesOf(one: Running): Promise<[string, Usage][]> {
    const entry = running.get(one)
    if (entry === undefined || entry.child.exitCode !== null || entry.child.signalCode !== null) return []
    const { name, childrenName, child } = entry
    if (!canReadProc) return [[name, (await askUsage(child)).usage]]
    if (childrenName === undefined) return [[name, await usageOf(one.pid)]]
    const { cpuSeconds, bytes } = await usageOfDescendants(one.pid)
    return [[childrenName, { cpuSeconds, peakBytes: Math.max(bytes, peaks.get(childrenName) ?? 0) }]]
  }

  async function retire(one: Running): Promise<void> {
    // The program may end while its usage is read.
    for (const [name, usage] of await usagesOf(one).catch(() => [])) add(ended, name, usage)
    running.delete(one)
  }

  return {
    async start(options) {
      if (stopping) throw new Error('the benchmark is ending')
      const child = launch(options)
      let stopped: Promise<void> | undefined
      const one = await follow(child, {
        name: options.name,
        readyLine: options.readyLine,
        usualLine: options.usualLine,
        onComplaint: (line) => complaints.push(`${options.name}: ${line}`),
        stop(self) {
          stopped ??= retire(self).then(() => end(child))
          return stopped
        },
      })
      running.set(one, { name: options.name, childrenName: options.childrenName, child })
      if (stopping) {
        await one.stop()
        throw new Error('the benchmark is ending')
      }
      return one
    },
    complaints: () => complaints,
    async usage() {
      const total = new Map(ended)
      for (const one of [...running.keys()]) {
        for (const [name, usage] of await usagesOf(one)) add(total, name, usage)
      }
      return total
    },
    async [Symbol.asyncDispose]() {
      stopping = true
      clearInterval(sampler)
      for (const one of [...running.keys()].reverse()) await one.stop()
    },
  }
}

function add(usages: Map<string, Usage>, name: string, { cpuSeconds, peakBytes }: Usage): void {
  const before = usages.get(name) ?? { cpuSeconds: 0, peakBytes: 0 }
  usages.set(name, {
    cpuSeconds: before.cpuSeconds + cpuSeconds,
    peakBytes: Math.max(before.peakBytes, peakBytes),
  })
}

function launch({ file, args = [], nodeArgs = [], env = {} }: ProgramOptions): ChildProcess {
  return spawn(process.execPath, [...nodeArgs, '--import', leash, pathOf(file), ...args], {
    env: { ...env, PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    serialization: 'advanced',
    // So that a Ctrl-C in the terminal only reaches the benchmark, which stops its programs in order.
    detached: true,
  })
}

function pathOf(file: string): string {
  return file.startsWith('file:') ? fileURLToPath(file) : file
}

type FollowOptions = {
  name: string
  readyLine: RegExp | undefined
  usualLine: RegExp | undefined
  /** Receives the first unexpected output lines of the program. */
  onComplaint: (line: string) => void
  stop: (self: Running) => Promise<void>
}

/** Waits until a program is ready, and returns the handle to call and stop it. */
async function follow(child: ChildProcess, options: FollowOptions): Promise<Running> {
  const { name, readyLine, usualLine, onComplaint, stop } = options
  const complaints: string[] = []
  const open = new Map<number, PromiseWithResolvers<unknown>>()
  const ready = Promise.withResolvers<RegExpExecArray | null>()
  let lastId = 0

  function fail(reason: string): void {
    const error = new Error([`the program "${name}" ${reason}`, ...complaints.slice(0, keptComplaints)].join('\n  '))
    ready.reject(error)
    for (const { reject } of open.values()) reject(error)
    open.clear()
  }

  child.once('error', (error) => fail(`could not be started: ${error.message}`))
  child.once('exit', (code, signal) => fail(`ended with ${signal ?? `code ${code}`}`))
  child.on('message', (message) => {
    if (message === 'ready' && readyLine === undefined) ready.resolve(null)
    const answer = answerMessage.safeParse(message)
    if (!answer.success) return
    const { id, result, error } = answer.data
    if (error === undefined) open.get(id)?.resolve(result)
    else open.get(id)?.reject(new Error(`the program "${name}" failed: ${error}`))
    open.delete(id)
  })
  for (const stream of [child.stdout, child.stderr]) {
    eachLine(stream, (line) => {
      const match = readyLine?.exec(line) ?? null
      if (match !== null) ready.resolve(match)
      if (match !== null || line.trim() === '' || usualLine?.test(line)) return
      if (complaints.push(line) <= keptComplaints) onComplaint(line)
    })
  }

  const timer = setTimeout(() => fail(`was not ready within ${startTimeoutMs / 1000} s`), startTimeoutMs)
  let caught: RegExpExecArray | null
  try {
    caught = await ready.promise
  } catch (error) {
    await end(child)
    throw error
  } finally {
    clearTimeout(timer)
  }
  if (child.pid === undefined) throw new Error(`the program "${name}" has no process id`)

  const self: Running = {
    pid: child.pid,
    ready: caught,
    async ask(method, params, answer) {
      if (!child.connected) throw new Error(`the program "${name}" has ended`)
      const id = ++lastId
      const reply = Promise.withResolvers<unknown>()
      open.set(id, reply)
      child.send({ id, method, params })
      return answer.parse(await reply.promise)
    },
    memory: async () => (await askUsage(child)).bytes,
    stop: () => stop(self),
    [Symbol.asyncDispose]: () => stop(self),
  }
  return self
}

function eachLine(stream: NodeJS.ReadableStream | null, onLine: (line: string) => void): void {
  let rest = ''
  stream?.setEncoding('utf8')
  stream?.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
  stream?.on('end', () => onLine(rest))
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
  await gone
  clearTimeout(timer)
}

/** Asks a program for its own usage, through `programs/leash.ts`. */
async function askUsage(child: ChildProcess): Promise<z.output<typeof usageMessage>> {
  const answer = Promise.withResolvers<z.output<typeof usageMessage>>()
  const listen = (message: unknown) => {
    const parsed = usageMessage.safeParse(message)
    if (parsed.success) answer.resolve(parsed.data)
  }
  const gone = () => answer.reject(new Error('the program ended'))
  child.on('message', listen).once('exit', gone)
  child.send('usage')
  try {
    return await answer.promise
  } finally {
    child.off('message', listen).off('exit', gone)
  }
}
