/**
 * The time of the machine's clock in milliseconds since 1970, with fractions. `Date` gives whole ones;
 * `performance.now()` has the fractions, but slides away from the clock that others on this machine
 * read. So the one is fitted to the other all the time: of what was seen in the last second, the
 * greatest difference is the truest, since `Date` only ever cuts off.
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
