/*
 * Local time in the zones of the IANA database, with the rules that the runtime has (ECMA-402).
 * A local time is the milliseconds that it would be in UTC.
 */

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** A name of the IANA database: `Europe/Berlin`, `Etc/GMT+3`, `America/Argentina/Salta`. Offsets are not names. */
const namePattern = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+){0,2}$/
/** The longest name has 32 characters. */
const maxNameLength = 64
/** More than there are names. Those of clients are hostile, so unknown ones are kept too, but not without end. */
const kept = 1_000

/** By the name in small letters. Null: there is no such zone. */
const formats = new Map<string, Intl.DateTimeFormat | null>()

function formatOf(zone: string): Intl.DateTimeFormat | null {
  if (zone.length > maxNameLength || !namePattern.test(zone)) return null
  const name = zone.toLowerCase()
  const known = formats.get(name)
  if (known !== undefined) return known
  const format = makeFormat(name)
  const [oldest] = formats.keys()
  if (formats.size >= kept && oldest !== undefined) formats.delete(oldest)
  formats.set(name, format)
  return format
}

function makeFormat(timeZone: string): Intl.DateTimeFormat | null {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

/** Returns whether there is a time zone of this name. Letter case does not matter. Takes text of any length. */
export function isTimeZone(name: string): boolean {
  return formatOf(name) !== null
}

const offsetPattern = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/

/** Returns how far the clocks of a zone are ahead of UTC at a time. Milliseconds. */
function offsetAt(format: Intl.DateTimeFormat, atMs: number): number {
  const [, sign, hours = 0, minutes = 0, seconds = 0] = offsetPattern.exec(format.format(atMs)) ?? []
  const ms = Number(hours) * hourMs + Number(minutes) * minuteMs + Number(seconds) * 1_000
  return sign === '-' ? -ms : ms
}

/**
 * Returns what the clocks of a zone show at a time, as the milliseconds that it would be in UTC.
 *
 * @throws RangeError: there is no such zone.
 */
export function localTimeAt(zone: string, atMs: number): number {
  return atMs + offsetAt(mustFormat(zone), atMs)
}

/** How far from a local time its offset is looked for: the date line is 24 hours wide, and zones reach 14 hours. */
const reachMs = 40 * hourMs
/** No zone changes its clocks twice within it. */
const stepMs = 10 * hourMs

/**
 * Returns the first instant at which the clocks of a zone show a local time or a later one. So a local time that exists
 * twice, when clocks go back, is the first of the two. One that does not exist, when they go forward, is the first
 * instant after the gap. Milliseconds of Unix time.
 *
 * @param localMs The local time, as the milliseconds that it would be in UTC. Whole seconds.
 * @throws RangeError: there is no such zone.
 */
export function instantOf(localMs: number, zone: string): number {
  const format = mustFormat(zone)
  const offsets = new Set<number>()
  for (let at = localMs - reachMs; at <= localMs + reachMs; at += stepMs) offsets.add(offsetAt(format, at))
  const tried = [...offsets].map((offset) => localMs - offset).toSorted((one, other) => one - other)
  const exact = tried.find((at) => at + offsetAt(format, at) === localMs)
  if (exact !== undefined) return exact
  // Nowhere: the clocks jump over it between the first and the last of these.
  let [before, after] = [Math.min(...tried) - 1_000, Math.max(...tried)]
  while (after - before > 1_000) {
    const middle = before + Math.floor((after - before) / 2_000) * 1_000
    if (middle + offsetAt(format, middle) < localMs) before = middle
    else after = middle
  }
  return after
}

function mustFormat(zone: string): Intl.DateTimeFormat {
  const format = formatOf(zone)
  if (format === null) throw new RangeError('There is no such time zone.')
  return format
}

/** The largest offset ahead of UTC, that of Kiritimati. Milliseconds. */
export const mostAheadMs = 14 * hourMs
