import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextAttemptAt } from '../../server/email-delivery/retry-schedule.ts'

const first = new Date('2026-03-01T09:30:00.000Z')
const hourMs = 3_600_000

test('pauses grow from five minutes to four hours, a fifth more or less', () => {
  const minutes = (attempts: number, random: number) =>
    ((nextAttemptAt({ attempts, firstAttemptAt: first, now: first }, random)?.getTime() ?? 0) - first.getTime()) /
    60_000
  expect([1, 2, 3, 4, 5, 6, 7, 8, 50].map((attempts) => minutes(attempts, 0.5))).toEqual([
    5, 10, 20, 40, 80, 160, 240, 240, 240,
  ])
  expect(minutes(1, 0)).toBe(4)
  expect(minutes(1, 0.999_999)).toBeCloseTo(6, 3)
})

test('a story of nothing but deferrals ends, and is tried at the end of the 72 hours', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 40, maxLength: 40 }),
      (randoms) => {
        let now = first
        let attempts = 1
        for (const random of randoms) {
          const next = nextAttemptAt({ attempts, firstAttemptAt: first, now }, random)
          if (next === null) break
          expect(next.getTime()).toBeGreaterThan(now.getTime())
          now = next
          attempts += 1
        }
        expect(now).toEqual(new Date(first.getTime() + 72 * hourMs))
        expect(attempts).toBeLessThan(40)
      },
    ),
  )
})
