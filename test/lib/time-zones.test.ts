import fc from 'fast-check'
import { expect, test } from 'vitest'
import { instantOf, isTimeZone, localTimeAt, mostAheadMs } from '../../server/lib/time-zones.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const zones = Intl.supportedValuesOf('timeZone')

const local = (text: string) => Date.parse(`${text}Z`)
const instant = (text: string, zone: string) => new Date(instantOf(local(text), zone)).toISOString()

/** Returns the local time in a zone, read from another format than the code uses. */
function wall(zone: string, atMs: number): number {
  const format =
    formats.get(zone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' })
  formats.set(zone, format)
  return local(format.format(atMs).replace(' ', 'T'))
}
const formats = new Map<string, Intl.DateTimeFormat>()

/** Local times, many of them near a change of clocks. */
const times = fc.oneof(
  fc.integer({ min: local('1975-01-01T00:00:00') / 1_000, max: local('2037-12-31T00:00:00') / 1_000 }),
  // Sundays at night in March, April, September, October and November.
  fc
    .tuple(fc.integer({ min: 1975, max: 2037 }), fc.constantFrom(2, 3, 8, 9, 10), fc.nat(31), fc.nat(4 * 3_600))
    .map(([year, month, day, second]) => Date.UTC(year, month, day) / 1_000 + second),
)

test('the instant of a local time is the first at which clocks show it or a later time, in every zone', () => {
  fc.assert(
    fc.property(fc.constantFrom(...zones), times, (zone, seconds) => {
      const wanted = seconds * 1_000
      const at = instantOf(wanted, zone)
      expect(wall(zone, at)).toBeGreaterThanOrEqual(wanted)
      expect(wall(zone, at - 1_000)).toBeLessThan(wanted)
      expect(localTimeAt(zone, at)).toBe(wall(zone, at))
      // Clocks go back by up to three hours (Antarctica/Casey, 2010).
      for (let before = at - 1_000; before > at - 4 * hourMs; before -= 10 * minuteMs) {
        expect(wall(zone, before)).toBeLessThan(wanted)
      }
    }),
    { numRuns: 300 },
  )
})

test.each([
  ['a usual day', '2026-12-01T09:00:00', 'Europe/Berlin', '2026-12-01T08:00:00.000Z'],
  ['a quarter of an hour', '2026-12-01T09:00:00', 'Asia/Kathmandu', '2026-12-01T03:15:00.000Z'],
  ['the first zone', '2026-12-01T09:00:00', 'Pacific/Kiritimati', '2026-11-30T19:00:00.000Z'],
  ['the last zone', '2026-12-01T09:00:00', 'Etc/GMT+12', '2026-12-01T21:00:00.000Z'],
  ['Chatham in summer', '2026-12-01T09:00:00', 'Pacific/Chatham', '2026-11-30T19:15:00.000Z'],
  ['Chatham in winter', '2026-07-01T09:00:00', 'Pacific/Chatham', '2026-06-30T20:15:00.000Z'],
  ['in a gap', '2026-03-29T02:30:00', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
  ['at the begin of a gap', '2026-03-29T02:00:00', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
  ['at the end of a gap', '2026-03-29T03:00:00', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
  ['twice', '2026-10-25T02:30:00', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
  ['the second before it is twice', '2026-10-25T01:59:59', 'Europe/Berlin', '2026-10-24T23:59:59.000Z'],
  ['in a gap of half an hour', '2026-10-04T02:15:00', 'Australia/Lord_Howe', '2026-10-03T15:30:00.000Z'],
  ['twice within half an hour', '2026-04-05T01:45:00', 'Australia/Lord_Howe', '2026-04-04T14:45:00.000Z'],
  ['in a gap of two hours', '2026-03-29T02:30:00', 'Antarctica/Troll', '2026-03-29T01:00:00.000Z'],
  ['twice within two hours', '2026-10-25T01:30:00', 'Antarctica/Troll', '2026-10-24T23:30:00.000Z'],
  ['on a day that was left out', '2011-12-30T12:00:00', 'Pacific/Apia', '2011-12-30T10:00:00.000Z'],
  ['on the day after it', '2011-12-31T00:00:00', 'Pacific/Apia', '2011-12-30T10:00:00.000Z'],
  ['a gap at midnight', '2026-03-29T00:30:00', 'Asia/Beirut', '2026-03-28T22:00:00.000Z'],
])('the instant of a local time: %s', (_, time, zone, expected) => {
  expect(instant(time, zone)).toBe(expected)
})

test('the instant of a local time comes nowhere earlier than 14 hours before that of UTC', () => {
  const time = local('2026-12-01T09:00:00')
  expect(Math.min(...zones.map((zone) => instantOf(time, zone)))).toBe(time - mostAheadMs)
})

test('the instant of a local time of an unknown zone is refused', () => {
  expect(() => instantOf(0, 'Nowhere/Here')).toThrow(RangeError)
})

test.each(['UTC', 'Europe/Berlin', 'europe/berlin', 'Asia/Calcutta', 'US/Pacific', 'Etc/GMT+12', 'EST5EDT'])(
  'the zone %s is known',
  (name) => {
    expect(isTimeZone(name)).toBe(true)
  },
)

test.each(['', '+01:00', 'Europe', 'Europe/Berlin ', "'; DROP TABLE campaigns; --", 'Europe/Berlin\n', 'ſ'])(
  'the zone %j is not known',
  (name) => {
    expect(isTimeZone(name)).toBe(false)
  },
)

test('the name of a zone may be hostile and of any length, and many', () => {
  expect(isTimeZone('A'.repeat(10_000_000))).toBe(false)
  for (let n = 0; n < 1_100; n++) expect(isTimeZone(`Europe/City${n}`)).toBe(false)
  expect(isTimeZone('Europe/Berlin')).toBe(true)
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      expect([true, false]).toContain(isTimeZone(name))
    }),
  )
})
