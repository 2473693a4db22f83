import type { Scheduler } from './scheduler-types.ts'

/** A timer that makes the scheduler mark requests that have been silent for too long. */
export type Silences = {
  /** Sets the timer. Call it after requests have begun. */
  watch(): void
  /** Clears the timer. */
  stop(): void
}

export type SilencesOptions = {
  scheduler: Pick<Scheduler, 'nextSilence' | 'elapse'>
  /** Called after requests may have been marked: their flows may start others. */
  onNoted: () => void
}

export function watchSilences({ scheduler, onNoted }: SilencesOptions): Silences {
  let next: { at: number; timer: NodeJS.Timeout } | undefined

  return {
    watch() {
      const at = scheduler.nextSilence()
      // A request that began later may have less patience than the earlier ones.
      if (at === undefined || (next !== undefined && next.at <= at)) return
      clearTimeout(next?.timer)
      const timer = setTimeout(
        () => {
          next = undefined
          scheduler.elapse(performance.now())
          onNoted()
        },
        Math.max(0, at - performance.now()),
      )
      next = { at, timer: timer.unref() }
    },
    stop() {
      clearTimeout(next?.timer)
      next = undefined
    },
  }
}
