import { type SendWindow, weekdays } from '../../contract/campaign-times.ts'
import { instantOf, localTimeAt } from '../lib/time-zones.ts'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** Whether a window is open, and when it closes, or else opens next. Milliseconds of Unix time. */
export type WindowState = { isOpen: boolean; untilMs: number }

/** Days around the present that are looked at: a window of one weekday may be left out once by a change of clocks. */
const daysBack = 2
const daysAhead = 16

/**
 * Returns how a window stands at a time. It is open from the first instant at which clocks show `from`, to the first at
 * which they show `to`, or a later time where clocks leave these out: see `instantOf`. A day on which clocks leave it out
 * as a whole has none.
 */
export function windowAt({ from, to, timezone, days }: SendWindow, nowMs: number): WindowState {
  const today = Math.floor(localTimeAt(timezone, nowMs) / dayMs) * dayMs
  const [fromMs, toMs] = [timeOf(from), timeOf(to)]
  for (let ahead = -daysBack; ahead <= daysAhead; ahead++) {
    const day = today + ahead * dayMs
    if (!days.includes(weekdayOf(day))) continue
    const opens = instantOf(day + fromMs, timezone)
    const closes = instantOf(day + toMs + (toMs <= fromMs ? dayMs : 0), timezone)
    if (closes <= opens || closes <= nowMs) continue
    return opens <= nowMs ? { isOpen: true, untilMs: closes } : { isOpen: false, untilMs: opens }
  }
  return { isOpen: false, untilMs: nowMs + dayMs }
}

function timeOf(text: string): number {
  const [hours = 0, minutes = 0] = text.split(':').map(Number)
  return (hours * 60 + minutes) * minuteMs
}

/** @param day The beginning of a day, as if it was in UTC. */
function weekdayOf(day: number): SendWindow['days'][number] {
  // Days of JavaScript begin with Sunday.
  return weekdays[(new Date(day).getUTCDay() + 6) % 7] ?? 'monday'
}
