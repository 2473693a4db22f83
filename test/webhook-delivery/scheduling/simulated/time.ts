import { createDeadlines } from '../../../../server/webhook-delivery/scheduling/deadline-heap.ts'

/** Moved time: what is to happen happens in its order, and nothing waits. Milliseconds from 0. */
export type Time = {
  now(): number
  /** Has something happen in so many milliseconds. */
  after(ms: number, what: () => void): void
  /** Lets all happen that is to happen until a time. */
  runUntil(ms: number): void
}

export function createTime(): Time {
  const happenings = createDeadlines<() => void>()
  let now = 0
  return {
    now: () => now,
    after: (ms, what) => happenings.add(what, now + ms),
    runUntil(ms) {
      for (let at = happenings.earliest(); at !== undefined && at <= ms; at = happenings.earliest()) {
        now = at
        happenings.takeDue(at)?.()
      }
      now = ms
    },
  }
}
