/**
 * Returns a clock of milliseconds since 1970 with fractions. `Date` has whole milliseconds. `performance.now()` has
 * fractions, but drifts from the system clock that other processes read. So its offset is adjusted continuously: the
 * greatest difference of the last second is the most accurate, since `Date` rounds down.
 */
export function createEpochClock(): () => number {
  let offset = Date.now() - performance.now()
  let candidate = offset
  let since = performance.now()

  return () => {
    const now = performance.now()
    const difference = Date.now() - now
    candidate = Math.max(candidate, difference)
    offset = Math.max(offset, difference)
    if (now - since > 1_000) {
      offset = candidate
      candidate = difference
      since = now
    }
    return now + offset
  }
}
