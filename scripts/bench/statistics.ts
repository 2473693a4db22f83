/* What is made of the measurements: pure functions. Numbers have the unit of what they are given. */

/** The value below which the part `q` (0 to 1) of `values` lies, between two of them by line. NaN of none. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const position = (sorted.length - 1) * q
  const below = sorted[Math.floor(position)] ?? Number.NaN
  const above = sorted[Math.ceil(position)] ?? Number.NaN
  return below + (above - below) * (position - Math.floor(position))
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** How a subject compares with its baseline: their medians and the one divided by the other. */
export function ratio(subject: readonly number[], baseline: readonly number[]): number {
  return median(subject) / median(baseline)
}

/**
 * How a subject compares with its baseline, of values measured in pairs, one soon after the other: the median
 * of the pairs' own ratios. What the machine does beside for longer than a pair takes is in neither of them.
 */
export function pairedRatio(subject: readonly number[], baseline: readonly number[]): number {
  return median(subject.map((value, index) => value / (baseline[index] ?? Number.NaN)))
}

/** What a measurement must reach. */
export type Goal = { atLeast: number } | { atMost: number }

export function isMet(value: number, goal: Goal): boolean {
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost
}

/**
 * How much a series still grows in the end: the greatest of its last third divided by the greatest of
 * the third before. About 1 when it has levelled off. NaN for fewer than three values.
 */
export function lateGrowth(values: readonly number[]): number {
  const third = Math.floor(values.length / 3)
  if (third === 0) return Number.NaN
  const last = Math.max(...values.slice(-third))
  const before = Math.max(...values.slice(-2 * third, -third))
  // Empty all the time is level.
  return last === before ? 1 : last / before
}
