import type { StartTimer } from '../lib/timer.ts'

/**
 * Lets work in bulk of this process wait while an email that is sent singly is made ready: claimed, planned and composed.
 * Both share the processor, the event loop and the database, where no order of theirs can be kept.
 */
export type BulkPause = {
  /** An email that is sent singly is made ready, until the returned function is called. Calling it again does nothing. */
  begin(): () => void
  /** Resolves when work in bulk may begin: at once, or at the end of the pause. */
  over(): Promise<void>
}

/** Maximum length of a pause. Milliseconds. */
const longestMs = 100
/** After a pause, work in bulk gets at least this share of its length before the next one. */
const shareAfter = 1 / 3

/** @param now Returns milliseconds, monotonic. */
export function createBulkPause({ now, startTimer }: { now: () => number; startTimer: StartTimer }): BulkPause {
  let single = 0
  let nextAt = Number.NEGATIVE_INFINITY
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
  }
}
