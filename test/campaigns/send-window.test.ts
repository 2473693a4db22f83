import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SendWindow, weekdays } from '../../contract/campaign-times.ts'
import { windowAt } from '../../server/campaigns/send-window.ts'
import { localTimeAt } from '../../server/lib/time-zones.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
const zones = Intl.supportedValuesOf('timeZone')

const text = (minutes: number) =>
  `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
const minute = fc.nat(24 * 60 - 1)
const windows: fc.Arbitrary<SendWindow> = fc
  .record({
    from: minute.map(text),
    to: minute.map(text),
    timezone: fc.constantFrom(...zones, 'Australia/Lord_Howe', 'Antarctica/Troll', 'Pacific/Chatham'),
    days: fc.uniqueArray(fc.constantFrom(...weekdays), { minLength: 1 }),
  })
  .filter(({ from, to }) => from !== to)
const times = fc
  .integer({ min: Date.UTC(2026, 0, 1) / minuteMs, max: Date.UTC(2028, 0, 1) / minuteMs })
  .map((minutes) => minutes * minuteMs)

/** Returns whether a window is open by the local time. Correct only where no clock change is near. */
function isOpenByClock({ from, to, timezone, days }: SendWindow, atMs: number): boolean {
  const shown = new Date(localTimeAt(timezone, atMs))
  const now = shown.toISOString().slice(11, 16)
  const isDay = (back: number) => days.includes(weekdays[(shown.getUTCDay() + 6 - back) % 7] ?? 'monday')
  if (from < to) return isDay(0) && from <= now && now < to
  return (isDay(0) && from <= now) || (isDay(1) && now < to)
}

const changesClocks = (zone: string, atMs: number) =>
  [-26, -13, 13, 26].some((hours) => {
    const then = atMs + hours * hourMs
    return localTimeAt(zone, then) - then !== localTimeAt(zone, atMs) - atMs
  })

test('a window is open when the clock says so, on every day on which clocks are not changed', () => {
  fc.assert(
    fc.property(windows, times, (window, at) => {
      fc.pre(!changesClocks(window.timezone, at))
      expect(windowAt(window, at).isOpen).toBe(isOpenByClock(window, at))
    }),
    { numRuns: 500 },
  )
})

test('a window stays open or closed until the moment that is told, and is the other then', () => {
  fc.assert(
    fc.property(windows, times, fc.double({ min: 0, max: 1, noNaN: true }), (window, at, part) => {
      const { isOpen, untilMs } = windowAt(window, at)
      expect(untilMs).toBeGreaterThan(at)
      expect(untilMs - at).toBeLessThanOrEqual(15 * dayMs)
      const between = at + Math.floor((untilMs - 1 - at) * part)
      expect(windowAt(window, between)).toEqual({ isOpen, untilMs })
      expect(windowAt(window, untilMs - 1)).toEqual({ isOpen, untilMs })
      // Clocks may leave out the time between two windows.
      if (!isOpen || !changesClocks(window.timezone, untilMs)) expect(windowAt(window, untilMs).isOpen).toBe(!isOpen)
    }),
    { numRuns: 300 },
  )
})

const all = [...weekdays]
const berlin = (from: string, to: string, days: SendWindow['days'] = all) => ({
  from,
  to,
  timezone: 'Europe/Berlin',
  days,
})

test.each<[string, SendWindow, string, boolean, string]>([
  ['by day, before it', berlin('09:00', '18:00'), '2026-06-01T06:59:59Z', false, '2026-06-01T07:00:00Z'],
  ['by day, at its begin', berlin('09:00', '18:00'), '2026-06-01T07:00:00Z', true, '2026-06-01T16:00:00Z'],
  ['by day, at its end', berlin('09:00', '18:00'), '2026-06-01T16:00:00Z', false, '2026-06-02T07:00:00Z'],
  ['by night', berlin('22:00', '06:00'), '2026-06-01T23:00:00Z', true, '2026-06-02T04:00:00Z'],
  ['over the change to summer', berlin('09:00', '18:00'), '2026-03-28T17:00:00Z', false, '2026-03-29T07:00:00Z'],
  ['over the change to winter', berlin('09:00', '18:00'), '2026-10-24T16:00:00Z', false, '2026-10-25T08:00:00Z'],
  ['in the night of the change', berlin('01:00', '04:00'), '2026-03-29T00:30:00Z', true, '2026-03-29T02:00:00Z'],
  ['that begins in a gap', berlin('02:30', '04:00'), '2026-03-29T00:59:00Z', false, '2026-03-29T01:00:00Z'],
  ['that a gap leaves out', berlin('02:10', '02:50'), '2026-03-28T23:00:00Z', false, '2026-03-30T00:10:00Z'],
  [
    'of a day that a gap leaves out',
    berlin('02:10', '02:50', ['sunday']),
    '2026-03-29T00:00:00Z',
    false,
    '2026-04-05T00:10:00Z',
  ],
  [
    'that ends at a time that comes twice',
    berlin('01:00', '02:30'),
    '2026-10-24T23:00:00Z',
    true,
    '2026-10-25T00:30:00Z',
  ],
  [
    'of a weekday, by night',
    berlin('22:00', '06:00', ['friday']),
    '2026-06-06T03:00:00Z',
    true,
    '2026-06-06T04:00:00Z',
  ],
  [
    'of weekdays, at the weekend',
    berlin('09:00', '18:00', ['friday', 'monday']),
    '2026-06-05T16:00:00Z',
    false,
    '2026-06-08T07:00:00Z',
  ],
])('a window is open or closed: %s', (_, window, ...[at, isOpen, until]) => {
  expect(windowAt(window, Date.parse(at))).toEqual({ isOpen, untilMs: Date.parse(until) })
})
