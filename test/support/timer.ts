import type { StartTimer } from '../../server/lib/timer.ts'

/** A timer that runs when a test says so. */
export type TestTimer = {
  startTimer: StartTimer
  /** How many were started so far. */
  readonly started: number
  /** How many wait. */
  readonly waiting: number
  /** How long they wait in all, those that wait, in milliseconds. */
  readonly durations: readonly number[]
  /** Lets so many milliseconds pass. */
  advance(ms: number): void
}

export function createTestTimer(): TestTimer {
  const waiting = new Map<symbol, { at: number; ms: number; callback: () => void }>()
  let now = 0
  let started = 0
  return {
    startTimer(callback, ms) {
      const id = Symbol()
      started += 1
      waiting.set(id, { at: now + ms, ms, callback })
      return () => waiting.delete(id)
    },
    get started() {
      return started
    },
    get waiting() {
      return waiting.size
    },
    get durations() {
      return [...waiting.values()].map(({ ms }) => ms)
    },
    advance(ms) {
      now += ms
      for (const [id, { at, callback }] of waiting) {
        if (at > now) continue
        waiting.delete(id)
        callback()
      }
    },
  }
}
