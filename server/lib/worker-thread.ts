import { Worker } from 'node:worker_threads'

/**
 * Content above this size, in bytes, is large: to decode, encode or hash it takes tens of milliseconds or more, and
 * several at once take much memory. Large content is read one at a time and processed in a worker thread.
 */
export const largeBytes = 262_144

export type ThreadTask = {
  /** The `workerData` of the module. */
  data: unknown
  /** Memory that is transferred to the thread and no longer usable here. Default: none. */
  transfer?: readonly ArrayBuffer[]
  /** Heap limit of the thread in MiB, without the transferred memory. Default: Node's. */
  heapMebibytes?: number
}

/**
 * Runs a module in a worker thread and returns the first message it sends. Returns null when the thread could not be
 * started, failed, or ended without a message.
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
