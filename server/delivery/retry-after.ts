import { maxRetryDelaySeconds } from './retry-schedule.ts'

const deltaSeconds = /^\d{1,10}$/
/** IMF-fixdate, and the obsolete forms of RFC 850 and asctime, which a recipient must accept too. */
const httpDates = [
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
]

/**
 * What a `Retry-After` header asks for, in whole seconds from `now`, at most a day; 0 for a time in
 * the past, null for anything that is none.
 *
 * Source: RFC 9110 §10.2.3, §5.6.7.
 */
export function parseRetryAfter(header: string | undefined, now: Date): number | null {
  const value = header?.trim()
  if (value === undefined) return null
  if (deltaSeconds.test(value)) return Math.min(Number(value), maxRetryDelaySeconds)
  if (!httpDates.some((form) => form.test(value))) return null
  const at = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  if (Number.isNaN(at)) return null
  const seconds = Math.ceil((at - now.getTime()) / 1000)
  return Math.min(Math.max(0, seconds), maxRetryDelaySeconds)
}
