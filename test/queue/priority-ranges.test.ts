import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  freshRange,
  priorityOfRetry,
  priorityOfTurn,
  rangeOfDueRetries,
  secondOf,
} from '../../server/queue/priority-ranges.ts'

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

test('the lanes never mix: fresh ones and retries have priorities of their own', () => {
  fc.assert(
    fc.property(times, times, (turnAt, dueAt) => {
      const fresh = priorityOfTurn(secondOf(turnAt))
      const retry = priorityOfRetry(dueAt)
      expect(holds(freshRange, fresh)).toBe(true)
      expect(fresh).toBeGreaterThan(retry)
      expect(retry).toBeGreaterThan(0)
      for (const priority of [fresh, retry]) expect(Number.isInteger(priority)).toBe(true)
      expect(fresh).toBeLessThanOrEqual(2_147_483_647)
    }),
  )
})
