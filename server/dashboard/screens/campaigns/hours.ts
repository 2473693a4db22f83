import type { CampaignFigures } from './campaign.ts'

const hourMs = 3_600_000
const withDay = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})

type Hour = Pick<CampaignFigures['hours'][number], 'start' | 'delivered' | 'opened' | 'clicked' | 'bounced'>

/**
 * Returns the hours of a chart: those in between in which nothing happened too, and an empty one at both ends, so that a
 * single hour is seen as a line.
 */
export function hoursOf(hours: readonly Hour[]): Record<string, string | number>[] {
  const [first, last] = [hours[0], hours.at(-1)]
  if (first === undefined || last === undefined) return []
  const byStart = new Map(hours.map((hour) => [Date.parse(hour.start), hour]))
  const rows: Record<string, string | number>[] = []
  for (let at = Date.parse(first.start) - hourMs; at <= Date.parse(last.start) + hourMs; at += hourMs) {
    const hour = byStart.get(at)
    rows.push({
      start: at,
      name: withDay.format(at),
      Delivered: hour?.delivered ?? 0,
      Opened: hour?.opened ?? 0,
      Clicked: hour?.clicked ?? 0,
      Bounced: hour?.bounced ?? 0,
    })
  }
  return rows
}
