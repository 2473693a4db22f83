import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  freshRange,
  lowestSingle,
  priorityOfRetry,
  priorityOfTurn,
  rangeOfDueRetries,
  secondOf,
} from '../../server/queue/priority-ranges.ts'
import { lanes } from '../../server/shared/lanes.ts'

const times = fc.date({ min: new Date('2025-01-02'), max: new Date('2055-01-01'), noInvalidDate: true })

function holds({ min, max }: { min: number; max: number }, priority: number): boolean {
  return priority >= min && priority <= max
}

test('the lanes show a claim of due retries every retry that is due for a second, and none that is not due', () => {
  fc.assert(
    fc.property(times, fc.integer({ min: -100_000, max: 100_000 }), (now, offsetMs) => {
      const dueAt = new Date(now.getTime() + offsetMs)
      const shown = holds(rangeOfDueRetries(now), priorityOfRetry(dueAt))
      if (offsetMs > 0) expect(shown).toBe(false)
      if (offsetMs <= -1000) expect(shown).toBe(true)
    }),
  )
})

test('the lanes put the retry that is due first above the others', () => {
  fc.assert(
    fc.property(times, fc.integer({ min: 1, max: 1_000_000 }), (dueAt, seconds) => {
      const later = new Date(dueAt.getTime() + seconds * 1000)
      expect(priorityOfRetry(dueAt)).toBeGreaterThan(priorityOfRetry(later))
    }),
  )
})

test('the ranges never mix: each lane has its own, of fresh emails and of retries, and single ones are above', () => {
  fc.assert(
    fc.property(times, times, (turnAt, dueAt) => {
      const priorities = lanes.flatMap((lane) => {
        const fresh = priorityOfTurn(secondOf(turnAt), lane)
        const retry = priorityOfRetry(dueAt, lane)
        expect(holds(freshRange(lane), fresh)).toBe(true)
        expect(holds(rangeOfDueRetries(new Date(dueAt.getTime() + 1_000), lane), retry)).toBe(true)
        expect([fresh, retry].map((priority) => priority >= lowestSingle)).toEqual(Array(2).fill(lane === 'single'))
        return [fresh, retry]
      })
      expect(priorities).toEqual(priorities.toSorted((one, other) => other - one))
      expect(new Set(priorities).size).toBe(4)
      // PostgreSQL's integer.
      for (const priority of priorities) expect(priority).toBe(priority | 0)
    }),
  )
})
