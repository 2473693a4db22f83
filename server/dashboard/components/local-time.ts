/*
 * Times as inputs have them: in the reader's zone, without its name.
 */

/** Returns the start of a day, or of `later` days after it, in the reader's zone. Undefined for what is no day. */
export function startOfDay(day: string | undefined, later = 0): string | undefined {
  if (day === undefined) return undefined
  const midnight = new Date(`${day}T00:00:00`)
  // Not a step from that time: where clocks leave midnight out, the day begins later, and the next one does not.
  const start = new Date(midnight.getFullYear(), midnight.getMonth(), midnight.getDate() + later)
  return Number.isNaN(start.getTime()) ? undefined : start.toISOString()
}

/** Returns a time as an input for times wants it, to the minute: 2026-03-01T09:30. */
export function localTime(at: Date): string {
  return exactLocalTime(at).slice(0, 16)
}

/** The same with seconds and milliseconds, where it has some. */
export function exactLocalTime(at: Date): string {
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return shifted
    .toISOString()
    .slice(0, 23)
    .replace(/(:00)?\.000$/, '')
}
