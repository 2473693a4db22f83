import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { freshRange, priorityOf, rangeOfSlow, rangeOfTurns } from '../../server/queue/lanes.ts'
import { createTurns, laterTurns, turnsPerSecond } from '../../server/queue/turns.ts'

const now = new Date('2026-03-01T09:30:00.500Z')
const flooded = { slow: false, lane: 1 }
const other = { slow: false, lane: 2 }

function later(seconds: number): Date {
  return new Date(now.getTime() + seconds * 1000)
}

describe('the turns of webhooks', () => {
  it('put what is for one before all that another has beyond its share', () => {
    const turns = createTurns()
    const flood = Array.from({ length: 1_000 }, () => turns.next(flooded, now))
    const next = turns.next(other, now)
    expect(flood.filter((priority) => priority >= next)).toHaveLength(turnsPerSecond)
  })

  it('keep the order of what is for one webhook', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 99 }), { maxLength: 500 }), (seconds) => {
        const turns = createTurns()
        const priorities = seconds.toSorted((a, b) => a - b).map((second) => turns.next(flooded, later(second)))
        expect(priorities).toEqual(priorities.toSorted((a, b) => b - a))
      }),
    )
  })

  it('are all among the fresh, and so many have come', () => {
    const turns = createTurns()
    const all = Array.from({ length: 300_000 }, () => turns.next(flooded, now))
    const least = Math.min(...all.slice(-1), ...all.slice(0, 1))
    expect(least).toBeGreaterThanOrEqual(freshRange.min)
    const come = rangeOfTurns(now)
    expect(come.max).toBe(freshRange.max)
    expect(all.filter((priority) => priority >= come.min)).toHaveLength(turnsPerSecond)
    // Nobody gets further ahead than an hour.
    expect(all.filter((priority) => priority < rangeOfTurns(later(3_600)).min)).toHaveLength(0)
  })

  it('come when their second has come', () => {
    const turns = createTurns()
    for (let taken = 0; taken < turnsPerSecond; taken++) turns.next(flooded, now)
    const beyond = turns.next(flooded, now)
    expect(beyond).toBeLessThan(rangeOfTurns(now).min)
    expect(beyond).toBeGreaterThanOrEqual(rangeOfTurns(later(1)).min)
  })

  it('are given up for as many a second, from the next on', () => {
    const next = laterTurns(flooded, now)
    const priorities = Array.from({ length: 2 * turnsPerSecond + 1 }, next)
    expect(priorities).toEqual(priorities.toSorted((a, b) => b - a))
    const comeIn = (seconds: number) => priorities.filter((one) => one >= rangeOfTurns(later(seconds)).min).length
    expect([0, 1, 2, 3].map(comeIn)).toEqual([0, turnsPerSecond, 2 * turnsPerSecond, 2 * turnsPerSecond + 1])
  })

  it('are owed by nobody once nothing waits any more', () => {
    const turns = createTurns()
    for (let taken = 0; taken < 1_000; taken++) turns.next(flooded, now)
    turns.forget()
    expect(turns.next(flooded, now)).toBe(turns.next(other, now))
  })

  it('go on when the clock is set back', () => {
    const turns = createTurns()
    const before = turns.next(flooded, now)
    expect(turns.next(flooded, later(-3_600))).toBeLessThanOrEqual(before)
    expect(turns.next(other, later(-3_600))).toBeGreaterThan(before)
  })

  it('do not matter in the slow lane, and what is due at once comes first', () => {
    const turns = createTurns()
    const slow = turns.next({ slow: true, lane: 9 }, now)
    expect(rangeOfSlow(9)).toEqual({ min: slow, max: slow })
    expect(priorityOf(flooded, null)).toBeGreaterThan(turns.next(flooded, now))
  })
})
