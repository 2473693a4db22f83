import { createSemaphore } from '../lib/semaphore.ts'
import type { RenderRequest, RenderResult } from './frames.ts'
import type { RenderProcess, startRenderProcess } from './render-process.ts'

export type ProcessPoolOptions = {
  /** Most processes. */
  processes: number
  /** Maximum heap of each. MiB. */
  heapMebibytes: number
  /** Time limit for one item. Milliseconds. */
  itemLimitMs: number
  /** Time limit for the items of one request, from when the first one begins. Milliseconds. */
  batchLimitMs: number
  /** Starts a process. */
  start: typeof startRenderProcess
}

/** Rendering processes, started when they are needed and kept. */
export type ProcessPool = {
  /**
   * Returns one result for each item, in order. An item that takes too long, or that ends its process twice, fails
   * alone: the others are done in a new process. Rejects when no process starts, and after `stop`.
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
  const { processes, heapMebibytes, itemLimitMs, batchLimitMs, start } = options
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
    if (result.end === 'complete') idle.push(process)
    return result
  }

  async function runAll(request: RenderRequest, limitMs: number): Promise<RenderResult[]> {
    const { items } = request
    const results: RenderResult[] = []
    const deadline = performance.now() + batchLimitMs
    /** The item during which a process ended, which is not always the fault of the item. */
    let suspect = -1
    while (results.length < items.length && performance.now() < deadline) {
      const left = { ...request, items: items.slice(results.length) }
      const { results: more, end } = await withProcess((process) => process.run(left, limitMs))
      results.push(...more)
      if (end === 'late') results.push({ ok: false, reason: `Rendering takes longer than ${limitMs / 1000} s.` })
      if (end !== 'ended') continue
      if (suspect === results.length) results.push({ ok: false, reason: 'Rendering takes too much memory.' })
      else suspect = results.length
    }
    while (results.length < items.length) results.push({ ok: false, reason: tooLate })
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

const tooLate = 'Not rendered: the template took too long for the people before in its batch.'

function stopped(): Error {
  return new Error('The renderer was stopped.')
}
