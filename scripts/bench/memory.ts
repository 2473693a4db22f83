import { setTimeout as delay } from 'node:timers/promises'
import type { Running } from './processes.ts'

const samplingMs = 250

/** Samples the memory of a process every 0.25 s until `stop`. */
export function watchMemory(process: Pick<Running, 'memory'>) {
  const samples: number[] = []
  const ending = new AbortController()
  const watching = (async () => {
    while (!ending.signal.aborted) {
      samples.push(await process.memory())
      await delay(samplingMs, undefined, { signal: ending.signal }).catch(() => undefined)
    }
  })()
  watching.catch(() => undefined)
  return {
    /** Returns what it had at first, and the most. Bytes. */
    stop() {
      ending.abort()
      return { idleBytes: samples[0] ?? Number.NaN, peakBytes: Math.max(...samples) }
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await watching.catch(() => undefined)
    },
  }
}
