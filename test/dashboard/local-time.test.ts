import { afterEach, expect, test } from 'vitest'
import { exactLocalTime, localTime, startOfDay } from '../../server/dashboard/components/local-time.ts'

const zoneBefore = process.env.TZ

/** Node takes a change of TZ at once. */
afterEach(() => {
  if (zoneBefore === undefined) delete process.env.TZ
  else process.env.TZ = zoneBefore
})

const zones = ['UTC', 'Asia/Kolkata', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe', 'America/St_Johns']

test.each(zones)('a time that an input shows is read as the same time, each half hour of a year in %s', (zone) => {
  process.env.TZ = zone
  const wrong: string[] = []
  for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += 30 * 60_000) {
    const shown = localTime(new Date(at))
    const read = new Date(shown).getTime()
    // An hour that clocks repeat is read as its first.
    if (read !== at && !(read < at && localTime(new Date(read)) === shown)) wrong.push(shown)
  }
  expect(wrong).toEqual([])
})

test.each([
  ['UTC', '2026-03-01T12:30'],
  ['Asia/Kolkata', '2026-03-01T18:00'],
  ['America/New_York', '2026-03-01T07:30'],
])('an input shows noon and a half of UTC as the clocks of %s do', (zone, shown) => {
  process.env.TZ = zone
  expect(localTime(new Date('2026-03-01T12:30:15.250Z'))).toBe(shown)
  expect(exactLocalTime(new Date('2026-03-01T12:30:15.250Z'))).toBe(`${shown}:15.250`)
  expect(exactLocalTime(new Date('2026-03-01T12:30:00.000Z'))).toBe(shown)
})

test.each([
  ['UTC', '2026-09-06', '2026-09-06T00:00:00.000Z', '2026-09-07T00:00:00.000Z'],
  ['Asia/Kolkata', '2026-09-06', '2026-09-05T18:30:00.000Z', '2026-09-06T18:30:00.000Z'],
  // 25 hours.
  ['America/New_York', '2026-11-01', '2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
  // Clocks leave out the hour from midnight.
  ['America/Santiago', '2026-09-06', '2026-09-06T04:00:00.000Z', '2026-09-07T03:00:00.000Z'],
])('a day in %s, %s, begins and ends as its clocks do', (zone, day, start, end) => {
  process.env.TZ = zone
  expect(startOfDay(day)).toBe(start)
  expect(startOfDay(day, 1)).toBe(end)
})

test('what is no day has no start', () => {
  expect(startOfDay(undefined)).toBeUndefined()
  expect(startOfDay('2026-13-40')).toBeUndefined()
})
