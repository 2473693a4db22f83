import { maxRetryDelaySeconds } from './retry-schedule.ts'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const time = String.raw`(?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2})`

/** IMF-fixdate, and the obsolete formats of RFC 850 and asctime, which a recipient must accept too. */
const httpDates = [
  String.raw`(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\d{2}) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) ${time} GMT`,
  String.raw`(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\d{2})-(?<month>[A-Z][a-z]{2})-(?<year>\d{2}) ${time} GMT`,
  String.raw`(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) ${time} (?<year>\d{4})`,
].map((form) => new RegExp(`^${form}$`))

/**
 * Parses a `Retry-After` header into whole seconds from `now`, at most a day. 0 for a time in the past. Null: the
 * header is missing or invalid.
 *
 * Source: RFC 9110 §10.2.3, §5.6.7.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | null {
  const value = header?.trim() ?? ''
  if (/^\d+$/.test(value)) return Math.min(Number(value), maxRetryDelaySeconds)
  const at = parseHttpDate(value, now)
  if (at === null) return null
  const seconds = Math.ceil((at - now.getTime()) / 1000)
  return Math.min(Math.max(0, seconds), maxRetryDelaySeconds)
}

/** Returns milliseconds of the Unix epoch. Null: not an HTTP date, or a day that the month does not have. */
function parseHttpDate(value: string, now: Date): number | null {
  for (const form of httpDates) {
    const parts = form.exec(value)?.groups
    if (parts === undefined) continue
    const month = months.indexOf(parts.month ?? '')
    const year = fullYear(parts.year ?? '', now)
    const day = Number(parts.day)
    const hour = Number(parts.hour)
    const minute = Number(parts.minute)
    const second = Number(parts.second)
    // Date.UTC would turn 31 April into 1 May. A second of 60 is a leap second.
    const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
    if (month < 0 || day < 1 || day > lastDay || hour > 23 || minute > 59 || second > 60) return null
    return Date.UTC(year, month, day, hour, minute, second)
  }
  return null
}

/** Returns the full year. Two digits mean a year at most 50 years ahead (RFC 9110 §5.6.7). */
function fullYear(digits: string, now: Date): number {
  if (digits.length === 4) return Number(digits)
  const thisYear = now.getUTCFullYear()
  const inThisCentury = thisYear - (thisYear % 100) + Number(digits)
  return inThisCentury > thisYear + 50 ? inThisCentury - 100 : inThisCentury
}
