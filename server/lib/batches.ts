import { setTimeout as pause } from 'node:timers/promises'
import { startLoop } from './polling-loop.ts'

/** A queue whose items are processed in batches. */
export type Batches<Item> = {
  add(item: Item): void
  /** Returns true when `isMeant` is true for a waiting item. */
  some(isMeant: (item: Item) => boolean): boolean
  /** Returns milliseconds since the last run without an error: a batch was processed, or none was waiting. */
  idleMs(): number
  /**
   * Processes the waiting items. Returns when none is left, or after an error once the deadline has passed. Do not
   * add items after this call.
   *
   * @param deadline Milliseconds of the monotonic clock (`performance.now`).
   */
  stop(deadline: number): Promise<void>
}

export type BatchesOptions<Item> = {
  /** Most items in a batch. */
  size: number
  /** Fewer items than this wait `gatheringMs` for more: a few items cost as much work as hundreds. */
  full: number
  /** Milliseconds to wait for a batch to fill. */
  gatheringMs: number
  /** Milliseconds between runs when no item is added. */
  intervalMs: number
  /** Processes a batch. Must be idempotent: a batch is tried again after an error. */
  work: (batch: readonly Item[]) => Promise<void>
  onError: (error: unknown) => void
}

/** Milliseconds between attempts while stopping, when time is short. */
const lastPauseMs = 20

/** Processes items in batches, in the order they were added. A failed batch stays in the queue and is tried again. */
export function startBatches<Item>(options: BatchesOptions<Item>): Batches<Item> {
  const { size, full, gatheringMs, intervalMs, work, onError } = options
  const waiting: Item[] = []

  async function workOnNext(): Promise<void> {
    const batch = waiting.slice(0, size)
    await work(batch)
    waiting.splice(0, batch.length)
  }

  const loop = startLoop({
    intervalMs,
    onError,
    async run() {
      if (waiting.length === 0) return false
      if (waiting.length < full) await pause(gatheringMs)
      await workOnNext()
      return waiting.length > 0
    },
  })

  return {
    add(item) {
      waiting.push(item)
      loop.wake()
    },
    some: (isMeant) => waiting.some(isMeant),
    idleMs: loop.idleMs,
    async stop(deadline) {
      // After an error the loop may pause for longer than the time left until the deadline.
      await loop.stop()
      for (let failed = false; waiting.length > 0 && !(failed && performance.now() >= deadline); ) {
        failed = await workOnNext().then(
          () => false,
          (error) => {
            onError(error)
            return true
          },
        )
        if (failed) await pause(lastPauseMs)
      }
    },
  }
}
