import { setTimeout as pause } from 'node:timers/promises'
import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import type { Queue } from '../queue/queue.ts'

/** Jobs of each lane moved by one statement. */
const pageSize = 1_000

export type AdoptOptions = {
  db: Db
  queue: Pick<Queue, 'flows'>
  /** Milliseconds between two checks for such jobs. A check that finds none reads four entries of an index. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Called when deliveries were moved into flows. */
  onAdopted: () => void
}

/**
 * Moves jobs that processes of the previous version put into the queue to their flows, as long as such processes may
 * run beside this one. Takes at most half of the time of one connection.
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
