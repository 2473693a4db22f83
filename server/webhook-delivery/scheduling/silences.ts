import type { Scheduler } from './scheduler-types.ts'

/** Has a scheduler note requests that have been silent for too long. */
export type Silences = {
  /** To be called after requests have begun. */
  watch(): void
  /** Ends a watch that is under way. */
  stop(): void
}

export type SilencesOptions = {
  scheduler: Pick<Scheduler, 'nextSilence' | 'elapse'>
  /** Told when some may have been noted: their flows may start others. */
  onNoted: () => void
}

export function watchSilences({ scheduler, onNoted }: SilencesOptions): Silences {
  let next: { at: number; timer: NodeJS.Timeout } | undefined

  return {
    watch() {
      const at = scheduler.nextSilence()
      // A request that has begun since may be silent for less long than the others.
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
