import type { Input } from '../../api/client.ts'

const dayMs = 86_400_000

/** The periods of the overview, the shortest first. */
export const periods = [
  { value: 'day', label: 'Day', words: 'the last 24 hours' },
  { value: 'week', label: 'Week', words: 'the last 7 days' },
  { value: 'month', label: 'Month', words: 'the last 30 days' },
] as const

export type Period = (typeof periods)[number]

/** Returns the start of the day in UTC that was `days` days ago, so that requests stay the same for a day. */
export function daysAgo(days: number, now = Date.now()): string {
  return new Date((Math.floor(now / dayMs) - days) * dayMs).toISOString()
}

/** Returns what to ask of the statistics for a period. */
export function queryOf({ value }: Period): NonNullable<Input<'GET /v1/statistics'>['query']> {
  if (value === 'day') return { step: 'hour' }
  return { step: 'day', since: daysAgo(value === 'week' ? 6 : 29) }
}

const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })

/** Returns the name of an hour in the reader's zone, or of a day of UTC. */
export function nameOf(start: string, step: 'hour' | 'day'): string {
  return (step === 'hour' ? hour : day).format(new Date(start))
}
