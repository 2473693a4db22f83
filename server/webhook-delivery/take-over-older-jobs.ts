import { setTimeout as pause } from 'node:timers/promises'
import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/loop.ts'
import type { Queue } from '../queue/queue.ts'

/** Jobs of each lane taken over by one statement. */
const pageSize = 1_000

export type AdoptOptions = {
  db: Db
  queue: Pick<Queue, 'flows'>
  /** Milliseconds between two looks for such jobs. A look that finds none reads four entries of an index. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Told when deliveries have come into flows. */
  onAdopted: () => void
}

/**
 * Takes jobs that processes of the version before have put into the queue over into their flows, for as long as such
 * processes may run beside this one. It takes half of one connection's time at most.
 */
export function startAdopting({ db, queue, intervalMs, onError, onAdopted }: AdoptOptions): Loop {
  return startLoop({
    intervalMs,
    onError,
    async run() {
      const began = performance.now()
      const { count, isFull } = await queue.flows.adopt(db, pageSize)
      if (count > 0) onAdopted()
      if (isFull) await pause(performance.now() - began)
      return isFull
    },
  })
}
