const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** A campaign in which something happened over a longer time is shown by day. */
const hourlyMs = 3 * dayMs

const withHour = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})
// Days are those of UTC.
const dayAlone = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
})

/** The counts of an hour or a day, as in the statistics of a campaign. */
type Step = Readonly<
  Record<'delivered' | 'opened' | 'clicked' | 'bounced' | 'unsubscribed', number> & {
    /** As ISO 8601. */
    start: string
  }
>

export type ChartSteps = { step: 'hour' | 'day'; rows: Record<string, string | number>[] }

/**
 * Returns what a chart shows of a campaign, by hour in its first three days and by day after that: also the steps in
 * between in which nothing happened, and an empty one at both ends, so that a single one is seen as a line.
 */
export function chartStepsOf({ hours, days }: { hours: readonly Step[]; days: readonly Step[] }): ChartSteps {
  const [first, last] = [days[0], days.at(-1)]
  if (first === undefined || last === undefined) return { step: 'hour', rows: [] }
  const isLong = Date.parse(last.start) - Date.parse(first.start) >= hourlyMs
  // Hours are kept for a shorter time than days.
  return isLong || hours.length === 0
    ? { step: 'day', rows: rowsOf(days, dayMs, dayAlone) }
    : { step: 'hour', rows: rowsOf(hours, hourMs, withHour) }
}

function rowsOf(steps: readonly Step[], stepMs: number, format: Intl.DateTimeFormat): ChartSteps['rows'] {
  const byStart = new Map(steps.map((step) => [Date.parse(step.start), step]))
  const starts = [...byStart.keys()]
  const rows: ChartSteps['rows'] = []
  for (let at = Math.min(...starts) - stepMs; at <= Math.max(...starts) + stepMs; at += stepMs) {
    const step = byStart.get(at)
    rows.push({
      start: at,
      name: format.format(at),
      Delivered: step?.delivered ?? 0,
      Opened: step?.opened ?? 0,
      Clicked: step?.clicked ?? 0,
      Bounced: step?.bounced ?? 0,
      Unsubscribed: step?.unsubscribed ?? 0,
    })
  }
  return rows
}
