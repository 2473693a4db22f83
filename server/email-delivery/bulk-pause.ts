import type { StartTimer } from '../lib/timer.ts'

/**
 * Lets work in bulk of this process wait while an email that is sent singly is under way to its server. Both share the
 * processor, the event loop and the database, where nothing else lets one go first.
 */
export type BulkPause = {
  /** An email that is sent singly is under way, until the returned function is called. Calling it again does nothing. */
  begin(): () => void
  /** Resolves when work in bulk may begin: at once, or at the end of the pause. */
  over(): Promise<void>
  /**
   * Returns how many of `most` items a step in bulk takes at once: a quarter of them while emails are sent singly, so that
   * one that comes does not find a long step begun.
   */
  atOnce(most: number): number
}

/** Maximum length of a pause. Milliseconds. */
const longestMs = 100
/** After a pause, work in bulk gets at least this share of its length before the next one. */
const shareAfter = 1 / 3
/** After so long without an email that is sent singly, steps in bulk are large again. Milliseconds. */
const quietMs = 5_000

/** @param now Returns milliseconds, monotonic. */
export function createBulkPause({ now, startTimer }: { now: () => number; startTimer: StartTimer }): BulkPause {
  let single = 0
  let nextAt = Number.NEGATIVE_INFINITY
  let lastAt = Number.NEGATIVE_INFINITY
  let pause: { over: Promise<void>; end(): void } | null = null

  function start(): void {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const since = now()
    const stopTimer = startTimer(() => pause?.end(), longestMs)
    pause = {
      over,
      end() {
        stopTimer()
        pause = null
        nextAt = now() + (now() - since) * shareAfter
        resolve()
      },
    }
  }

  return {
    begin() {
      single += 1
      lastAt = now()
      if (pause === null && now() >= nextAt) start()
      let isOver = false
      return () => {
        if (isOver) return
        isOver = true
        single -= 1
        if (single === 0) pause?.end()
      }
    },
    over: () => pause?.over ?? Promise.resolve(),
    atOnce: (most) => (now() - lastAt < quietMs ? Math.ceil(most / 4) : most),
  }
}
