import { afterEach, expect, test } from 'vitest'
import {
  exactLocalTime,
  localTime,
  momentOf,
  startOfDay,
  timeFault,
} from '../../server/dashboard/components/local-time.ts'

const zoneBefore = process.env.TZ

/** Node takes a change of TZ at once. */
afterEach(() => {
  if (zoneBefore === undefined) delete process.env.TZ
  else process.env.TZ = zoneBefore
})

const zones = ['UTC', 'Asia/Kolkata', 'America/New_York', 'Pacific/Apia', 'Australia/Lord_Howe', 'America/St_Johns']

test.each(zones)('a time that an input shows at first is read as the same moment, each half hour in %s', (zone) => {
  process.env.TZ = zone
  const wrong: string[] = []
  for (let at = Date.UTC(2026, 0, 1, 0, 0, 45, 250); at < Date.UTC(2027, 0, 1); at += 30 * 60_000) {
    const initial = new Date(at).toISOString()
    if (momentOf(localTime(new Date(at)), initial) !== initial) wrong.push(initial)
  }
  expect(wrong).toEqual([])
})

test('a time that clocks show twice is read as its first, but the second where the input showed that', () => {
  process.env.TZ = 'America/New_York'
  const [first, second] = ['2026-11-01T05:30:45.000Z', '2026-11-01T06:30:45.000Z']
  expect([localTime(new Date(first)), localTime(new Date(second))]).toEqual(['2026-11-01T01:30', '2026-11-01T01:30'])
  expect(momentOf('2026-11-01T01:30', second)).toBe(second)
  expect(momentOf('2026-11-01T01:30')).toBe('2026-11-01T05:30:00.000Z')
  expect(momentOf('2026-11-01T01:31', second)).toBe('2026-11-01T05:31:00.000Z')
})

test('a time that clocks skip is no moment, and says so', () => {
  process.env.TZ = 'America/New_York'
  expect(momentOf('2026-03-08T02:30')).toBeUndefined()
  expect(timeFault('2026-03-08T02:30')).toMatch(/Clocks skip this time/)
  expect(timeFault('2026-03-08T03:00')).toBeNull()
  expect(momentOf('2026-03-08T03:00')).toBe('2026-03-08T07:00:00.000Z')
  expect(timeFault('0002-03-08T03:00')).toBeNull()
  expect(timeFault('')).toBe('Choose a time')
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
