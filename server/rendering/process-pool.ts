import { createSemaphore } from '../lib/semaphore.ts'
import type { BatchLimits, RenderRequest, RenderResult } from './frames.ts'
import { lengthOfTexts } from './limits.ts'
import type { RenderProcess, startRenderProcess } from './render-process.ts'

export type ProcessPoolOptions = {
  /** Most processes. */
  processes: number
  /** Maximum heap of each. MiB. */
  heapMebibytes: number
  /** Time limit for one item. Milliseconds. */
  itemLimitMs: number
  /** Starts a process. */
  start: typeof startRenderProcess
}

/** Rendering processes, started when they are needed and kept. */
export type ProcessPool = {
  /**
   * Returns one result for each of the first items, in order: for all, or as many as the limits of the request allow,
   * and for one at least. An item that takes too long, or that ends its process twice, fails alone: the others are done
   * in a new process. Rejects when no process starts, and after `stop`.
   *
   * @param limitMs Time limit for one item. Default: that of the pool.
   */
  run(request: RenderRequest, limitMs?: number): Promise<RenderResult[]>
  /** Ends all processes. Runs that are under way reject. */
  stop(): Promise<void>
}

/** Time limit for the start of a process, on a busy machine. Milliseconds. */
const startLimitMs = 20_000

export function createProcessPool(options: ProcessPoolOptions): ProcessPool {
  const { processes, heapMebibytes, itemLimitMs, start } = options
  const permits = createSemaphore(processes)
  const idle: RenderProcess[] = []
  const running = new Set<RenderProcess>()
  let isStopped = false

  function takeIdle(): RenderProcess | undefined {
    let process = idle.pop()
    while (process !== undefined && !process.isAlive()) process = idle.pop()
    return process
  }

  /** Runs `work` with a process, which stays for others unless `work` says that it is gone. */
  async function withProcess<Result extends { end: string }>(
    work: (process: RenderProcess) => Promise<Result>,
  ): Promise<Result> {
    const process = takeIdle() ?? (await start({ heapMebibytes, startLimitMs }))
    running.add(process)
    if (isStopped) {
      await process.stop()
      throw stopped()
    }
    const result = await work(process)
    running.delete(process)
    if (isStopped) throw stopped()
    if (result.end === 'complete' || result.end === 'limited') idle.push(process)
    return result
  }

  async function runAll(request: RenderRequest, limitMs: number): Promise<RenderResult[]> {
    const { items, limits } = request
    const results: RenderResult[] = []
    let left = limits
    let deadline = Number.POSITIVE_INFINITY
    /** The item during which a process ended, which is not always the fault of the item. */
    let suspect = -1
    // The first item gets a result, however long it takes until a process has one: else callers would ask for it for ever.
    while (results.length < items.length && (results.length === 0 || hasRoom(left))) {
      const { results: more, end } = await withProcess((process) => {
        deadline = Math.min(deadline, performance.now() + limits.timeMs)
        return process.run({ ...request, items: items.slice(results.length), limits: left }, limitMs)
      })
      results.push(...more)
      if (end === 'limited') break
      if (end === 'late') results.push({ ok: false, reason: `Rendering takes longer than ${limitMs / 1000} s.` })
      if (end === 'ended') {
        if (suspect === results.length) results.push({ ok: false, reason: 'Rendering takes too much memory.' })
        else suspect = results.length
      }
      const outputLength = limits.outputLength - results.reduce((sum, result) => sum + lengthOfTexts(result), 0)
      left = { timeMs: deadline - performance.now(), outputLength }
    }
    return results
  }

  return {
    async run(request, limitMs = itemLimitMs) {
      if (request.items.length === 0) return []
      const release = await permits.acquire()
      try {
        if (isStopped) throw stopped()
        return await runAll(request, limitMs)
      } finally {
        release()
      }
    },
    async stop() {
      isStopped = true
      await Promise.all([...idle.splice(0), ...running].map((process) => process.stop()))
    },
  }
}

function hasRoom({ timeMs, outputLength }: BatchLimits): boolean {
  return timeMs > 0 && outputLength > 0
}

function stopped(): Error {
  return new Error('The renderer was stopped.')
}
