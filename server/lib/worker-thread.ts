import { Worker } from 'node:worker_threads'

/**
 * Content above this size is large: decoding, encoding or hashing it takes tens of milliseconds and more, and many of
 * it at once much memory. So it is read by itself and worked on in a thread. Bytes.
 */
export const largeBytes = 262_144

export type ThreadTask = {
  /** What the module finds as `workerData`. */
  data: unknown
  /** Memory that is handed over with it, and lost here. Default: none. */
  transfer?: readonly ArrayBuffer[]
  /** What the thread may take beside what it is given. MiB. Default: that of Node. */
  heapMebibytes?: number
}

/**
 * Runs a module in a thread of its own and returns the first message it sends. Null when the thread could not be
 * started, failed or ended without one.
 */
export function runInThread<Result>(
  module: URL,
  { data, transfer = [], heapMebibytes }: ThreadTask,
): Promise<Result | null> {
  return new Promise((resolve) => {
    const thread = new Worker(module, {
      workerData: data,
      transferList: [...transfer],
      execArgv: [],
      ...(heapMebibytes !== undefined && { resourceLimits: { maxOldGenerationSizeMb: heapMebibytes } }),
    })
    thread.once('message', resolve)
    thread.once('error', () => resolve(null))
    thread.once('exit', () => resolve(null))
  })
}
