import { setTimeout as pause } from 'node:timers/promises'
import { startLoop } from './loop.ts'

/** Items that are worked on many at a time. */
export type Batches<Item> = {
  add(item: Item): void
  /** Whether an item waits for which this is so. */
  some(isMeant: (item: Item) => boolean): boolean
  /** Milliseconds since a batch was last worked on, or nothing waited, without an error. */
  idleMs(): number
  /**
   * Works on what waits, and ends when nothing does, or at the deadline; each batch is tried once in any case.
   * Milliseconds, monotonic. Nothing is to be added any more.
   */
  stop(deadline: number): Promise<void>
}

export type BatchesOptions<Item> = {
  /** Items in a batch, at most. */
  size: number
  /** Fewer items than these wait a moment for more: work on a handful costs as much as on hundreds. */
  full: number
  /** That moment. Milliseconds. */
  gatheringMs: number
  /** Milliseconds between attempts at what could not be worked on. */
  intervalMs: number
  /** What it throws at is tried again, so it is to change nothing a second time. */
  work: (batch: readonly Item[]) => Promise<void>
  onError: (error: unknown) => void
}

/** Between attempts at the end, when there is no time to lose. Milliseconds. */
const lastPauseMs = 20

/** Works on items in batches, in the order they come. A batch that fails waits here and is worked on again. */
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
      // After an error the loop pauses for longer than there is time.
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
