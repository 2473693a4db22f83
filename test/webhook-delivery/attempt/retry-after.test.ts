import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseRetryAfter } from '../../../server/webhook-delivery/attempt/retry-after.ts'

const now = new Date('2026-03-01T09:30:00.000Z')
const day = 86_400

describe('Retry-After', () => {
  test.each([
    ['0', 0],
    ['120', 120],
    [' 120 ', 120],
    ['0120', 120],
    ['86400', day],
    ['86401', day],
    ['99999999999999999999999999', day],
    ['Sun, 01 Mar 2026 09:31:00 GMT', 60],
    ['Sunday, 01-Mar-26 09:31:00 GMT', 60],
    ['Sun Mar  1 09:31:00 2026', 60],
    ['Mon Mar 02 09:29:59 2026', day - 1],
    ['Sun, 01 Mar 2026 09:30:60 GMT', 60],
    ['Mon, 01 Jan 2126 00:00:00 GMT', day],
    ['Sunday, 06-Nov-75 08:49:37 GMT', day],
    ['Sun, 01 Mar 2026 09:29:59 GMT', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 0],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 0],
  ])('%o asks for %d seconds', (header, seconds) => {
    expect(parseRetryAfter(header, now)).toBe(seconds)
  })

  test.each([
    undefined,
    '',
    ' ',
    '-1',
    '+60',
    '1.5',
    '1e3',
    '0x10',
    '60 seconds',
    '60, 120',
    'soon',
    'tomorrow',
    '2026-03-01T09:31:00Z',
    'Sun, 01 Mar 2026 09:31:00',
    'Sun, 01 Mar 2026 09:31:00 CET',
    'Sun, 1 Mar 2026 09:31:00 GMT',
    'Sun, 31 Feb 2026 09:31:00 GMT',
    'Sun, 00 Mar 2026 09:31:00 GMT',
    'Sun, 01 Mrz 2026 09:31:00 GMT',
    'Sun, 01 Mar 2026 24:00:00 GMT',
    'Sun, 01 Mar 2026 09:60:00 GMT',
    'sun, 01 mar 2026 09:31:00 gmt',
    '٦٠',
  ])('%o is no request', (header) => {
    expect(parseRetryAfter(header, now)).toBeNull()
  })

  test('Retry-After of any date is the time until then, never negative, never more than a day', () => {
    const dates = fc.date({ min: new Date('1970-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
    fc.assert(
      fc.property(dates, dates, (at, from) => {
        const wholeSeconds = Math.floor(at.getTime() / 1000) * 1000
        const seconds = Math.ceil((wholeSeconds - from.getTime()) / 1000)
        const expected = Math.min(Math.max(0, seconds), day)
        expect(parseRetryAfter(at.toUTCString(), from)).toBe(expected)
      }),
    )
  })

  test('Retry-After of any text is a number of seconds within a day, or nothing', () => {
    const almost = fc.mixedCase(fc.constantFrom('Sun, 01 Mar 2026 09:31:00 GMT', '120', 'Sun Mar  1 09:31:00 2026'))
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), almost), (text) => {
        const seconds = parseRetryAfter(text, now)
        if (seconds === null) return
        expect(Number.isInteger(seconds)).toBe(true)
        expect(seconds).toBeGreaterThanOrEqual(0)
        expect(seconds).toBeLessThanOrEqual(day)
      }),
    )
  })
})
