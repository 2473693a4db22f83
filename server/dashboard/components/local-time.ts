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

/**
 * Returns the moment that an input for times means. Undefined: it is empty, or clocks skip its time on that day. Where
 * they show it twice, it is the first.
 *
 * @param initial The moment that the input showed at first. As long as its time stands there, it is meant: it can have
 *   seconds, and be the second of both.
 */
export function momentOf(value: string, initial?: string): string | undefined {
  if (initial !== undefined && value === localTime(new Date(initial))) return initial
  const at = new Date(value)
  if (Number.isNaN(at.getTime())) return undefined
  // Not by `localTime`: offsets of long ago, such as while a year is typed, are no whole minutes.
  return at.toTimeString().slice(0, 5) === value.slice(11, 16) ? at.toISOString() : undefined
}

/** Returns why an input for times means no moment. Null: it does. */
export function timeFault(value: string, initial?: string): string | null {
  if (momentOf(value, initial) !== undefined) return null
  return Number.isNaN(Date.parse(value)) ? 'Choose a time' : 'Clocks skip this time on that day. Choose another.'
}

/** Returns a time as `localTime` does, with its seconds and milliseconds where it has some. */
export function exactLocalTime(at: Date): string {
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000)
  return shifted
    .toISOString()
    .slice(0, 23)
    .replace(/(:00)?\.000$/, '')
}
