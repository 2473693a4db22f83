/* Statistics of measurements. Pure functions. Results have the unit of their input. */

/** Returns the quantile `q` (0 to 1) of `values` with linear interpolation. NaN without values. */
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

/** Returns the median of the subject divided by the median of the baseline. */
export function ratio(subject: readonly number[], baseline: readonly number[]): number {
  return median(subject) / median(baseline)
}

/**
 * Returns the median of the ratios of pairs that were measured one after the other. Other load on the machine that
 * lasts longer than a pair cancels out.
 */
export function pairedRatio(subject: readonly number[], baseline: readonly number[]): number {
  return median(subject.map((value, index) => value / (baseline[index] ?? Number.NaN)))
}

/** The goal of a measurement. */
export type Goal = { atLeast: number } | { atMost: number }

export function isMet(value: number, goal: Goal): boolean {
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost
}

/**
 * Returns how much a series still grows at its end: the maximum of the last third divided by the maximum of the third
 * before. About 1 when it has levelled off. NaN for fewer than three values.
 */
export function lateGrowth(values: readonly number[]): number {
  const third = Math.floor(values.length / 3)
  if (third === 0) return Number.NaN
  const last = Math.max(...values.slice(-third))
  const before = Math.max(...values.slice(-2 * third, -third))
  // Zero in both thirds counts as level.
  return last === before ? 1 : last / before
}
