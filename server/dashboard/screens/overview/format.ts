const counts = new Intl.NumberFormat('en')

export function countOf(value: number): string {
  return counts.format(value)
}

/**
 * Returns a share for people: 0.98 as "98 %".
 *
 * @param places Digits behind the point.
 */
export function percentOf(share: number | null, places: 0 | 1 | 2 = 1): string {
  return share === null ? '–' : `${Number((100 * share).toFixed(places))} %`
}

export function millisecondsOf(value: number | null): string {
  return value === null ? '–' : `${counts.format(Math.round(value))} ms`
}
