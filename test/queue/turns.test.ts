import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { freshRange, priorityOf, rangeOfSlow, rangeOfTurns, secondOf } from '../../server/queue/lanes.ts'
import { accountTurnsPerSecond, createTurns, turnsPerSecond } from '../../server/queue/turns.ts'

const now = new Date('2026-03-01T09:30:00.500Z')
const flooded = { slow: false, lane: 1 }
const other = { slow: false, lane: 2 }

function webhook(lane: number) {
  return { slow: false, lane }
}

function later(seconds: number): Date {
  return new Date(now.getTime() + seconds * 1000)
}

describe('the turns of webhooks', () => {
  it('put what is for one before all that another has beyond its share', () => {
    const turns = createTurns()
    const flood = Array.from({ length: 1_000 }, () => turns.next('flood', flooded, now))
    const next = turns.next('other', other, now)
    expect(flood.filter((priority) => priority >= next)).toHaveLength(turnsPerSecond)
  })

  it('put what is for one account before all that another has beyond its share, for however many webhooks', () => {
    const turns = createTurns()
    const flood = Array.from({ length: 10_000 }, (_, index) => turns.next('flood', webhook(10 + (index % 20)), now))
    const next = turns.next('other', other, now)
    const before = flood.filter((priority) => priority >= next).length
    expect(before).toBeLessThanOrEqual(accountTurnsPerSecond)
    expect(before).toBeGreaterThan(turnsPerSecond)
  })

  it('leave some to the other webhooks of an account that floods one, and fewer beside two', () => {
    const turns = createTurns()
    const turnsNow = (lane: number) => {
      const all = Array.from({ length: 1_000 }, () => turns.next('flood', webhook(lane), now))
      return all.filter((priority) => priority >= rangeOfTurns(secondOf(now)).min).length
    }
    expect([1, 2, 3, 4, 5, 6, 7, 8].map(turnsNow)).toEqual([64, 32, 16, 8, 4, 2, 1, 1])
    expect([9, 10].map(turnsNow)).toEqual([0, 0])
  })

  it('of what is past are forgotten, and those of what is to come are not', () => {
    const turns = createTurns()
    for (let taken = 0; taken < 3 * accountTurnsPerSecond; taken++) turns.next('flood', webhook(taken % 20), now)
    for (let lane = 20; lane < 40; lane++) turns.next('flood', webhook(lane), later(1))
    const isComing = (seconds: number) =>
      turns.next('flood', webhook(50), later(seconds)) >= rangeOfTurns(secondOf(later(seconds))).min
    expect([isComing(1), isComing(5)]).toEqual([false, true])
  })

  it('keep the order of what is for one webhook', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 99 }), { maxLength: 500 }), (seconds) => {
        const turns = createTurns()
        const priorities = seconds
          .toSorted((a, b) => a - b)
          .map((second) => turns.next('flood', flooded, later(second)))
        expect(priorities).toEqual(priorities.toSorted((a, b) => b - a))
      }),
    )
  })

  it('are all among the fresh, and so many have come', () => {
    const turns = createTurns()
    const all = Array.from({ length: 300_000 }, () => turns.next('flood', flooded, now))
    const least = Math.min(...all.slice(-1), ...all.slice(0, 1))
    expect(least).toBeGreaterThanOrEqual(freshRange.min)
    const come = rangeOfTurns(secondOf(now))
    expect(come.max).toBe(freshRange.max)
    expect(all.filter((priority) => priority >= come.min)).toHaveLength(turnsPerSecond)
    // Nobody gets further ahead than an hour.
    expect(all.filter((priority) => priority < rangeOfTurns(secondOf(later(3_600))).min)).toHaveLength(0)
  })

  it('come when their second has come', () => {
    const turns = createTurns()
    for (let taken = 0; taken < turnsPerSecond; taken++) turns.next('flood', flooded, now)
    const beyond = turns.next('flood', flooded, now)
    expect(beyond).toBeLessThan(rangeOfTurns(secondOf(now)).min)
    expect(beyond).toBeGreaterThanOrEqual(rangeOfTurns(secondOf(later(1))).min)
  })

  it('are given up for as many a second, from the next on', () => {
    const next = createTurns().later(flooded, now)
    const priorities = Array.from({ length: 2 * turnsPerSecond + 1 }, next)
    expect(priorities).toEqual(priorities.toSorted((a, b) => b - a))
    const comeIn = (seconds: number) =>
      priorities.filter((one) => one >= rangeOfTurns(secondOf(later(seconds))).min).length
    expect([0, 1, 2, 3].map(comeIn)).toEqual([0, turnsPerSecond, 2 * turnsPerSecond, 2 * turnsPerSecond + 1])
  })

  it('last until those that wait with them are reached, be that before or behind the clock', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1_000, max: 1_000 }), (seconds) => {
        const turns = createTurns()
        const reached = secondOf(later(seconds))
        turns.reach(reached, now)
        turns.reach(reached - 1, now)
        expect(turns.come()).toBe(reached - 1)
        // Before all that waits, and in its turn.
        const waiting = rangeOfTurns(reached)
        expect(turns.next('other', other, now)).toBe(waiting.min + 1)
        expect(turns.later(other, now)()).toBe(waiting.min)
        turns.forget()
        expect(turns.come()).toBeNull()
        expect(turns.next('other', other, now)).toBe(rangeOfTurns(secondOf(now)).min)
      }),
    )
  })

  it('advance with what waits, and begin anew with a process that began anew', () => {
    const turns = createTurns()
    const second = secondOf(now)
    for (const ahead of [1, 5, 467]) {
      turns.reach(second + ahead, now)
      expect(turns.come()).toBe(second + ahead - 1)
    }
    const debts = Array.from({ length: 1_000 }, () => turns.next('flood', flooded, now))
    turns.reach(second + 460, now)
    expect(turns.come()).toBe(second + 466)
    turns.reach(second, now)
    expect(turns.come()).toBe(second - 1)
    expect(turns.next('flood', flooded, now)).toBeGreaterThan(debts[0] ?? 0)
  })

  it('are never more in a second, however far ahead, while something waits', () => {
    const turns = createTurns()
    turns.reach(secondOf(now), now)
    const flood = Array.from({ length: 400_000 }, () => turns.next('flood', flooded, now))
    const inSecond = [...Map.groupBy(flood, (priority) => priority).values()].map(({ length }) => length)
    expect(Math.max(...inSecond)).toBe(turnsPerSecond)
    expect(flood.at(-1)).toBeGreaterThanOrEqual(freshRange.min)
  })

  it('are given back by a webhook that becomes slow, which waits for itself alone', () => {
    const turns = createTurns()
    for (let taken = 0; taken < 10_000; taken++) turns.next('flood', flooded, now)
    turns.next('flood', { ...flooded, slow: true }, now)
    expect(turns.next('flood', flooded, now)).toBe(rangeOfTurns(secondOf(now)).min)
  })

  it('are given anew to who is not ahead of the clock when what waits is behind it', () => {
    const turns = createTurns()
    for (let taken = 0; taken < turnsPerSecond; taken++) turns.next('other', other, now)
    for (let taken = 0; taken <= turnsPerSecond; taken++) turns.next('flood', flooded, now)
    const second = secondOf(later(-5))
    turns.reach(second, now)
    expect(turns.next('other', other, now)).toBe(rangeOfTurns(second).min + 1)
    expect(turns.next('flood', flooded, now)).toBe(rangeOfTurns(secondOf(later(1))).min)
  })

  it('are not given anew to who is ahead when others are reached', () => {
    const turns = createTurns()
    const flood = Array.from({ length: 1_000 }, () => turns.next('flood', flooded, now))
    turns.reach(secondOf(later(3)), now)
    const next = turns.next('other', other, now)
    expect(turns.next('flood', flooded, now)).toBeLessThanOrEqual(flood.at(-1) ?? 0)
    expect(flood.filter((priority) => priority > next)).toHaveLength(2 * turnsPerSecond)
  })

  it('are owed by nobody once nothing waits any more', () => {
    const turns = createTurns()
    for (let taken = 0; taken < 1_000; taken++) turns.next('flood', flooded, now)
    turns.forget()
    expect(turns.next('flood', flooded, now)).toBe(turns.next('other', other, now))
  })

  it('go on when the clock is set back', () => {
    const turns = createTurns()
    const before = turns.next('flood', flooded, now)
    expect(turns.next('flood', flooded, later(-3_600))).toBeLessThanOrEqual(before)
    expect(turns.next('other', other, later(-3_600))).toBeGreaterThan(before)
  })

  it('do not matter in the slow lane, and what is due at once comes first', () => {
    const turns = createTurns()
    const slow = turns.next('flood', { slow: true, lane: 9 }, now)
    expect(rangeOfSlow(9)).toEqual({ min: slow, max: slow })
    expect(priorityOf(flooded, null)).toBeGreaterThan(turns.next('flood', flooded, now))
  })
})
