import { expect, test } from 'vitest'
import { createTurns, turnsPerSecond } from '../../server/queue/fair-queuing.ts'
import { freshRange, priorityOfTurn, secondOf } from '../../server/queue/priority-ranges.ts'

const now = new Date('2026-03-01T09:30:00.000Z')

const later = (seconds: number) => new Date(now.getTime() + seconds * 1_000)

test('the turns of an account are so many in a second, and a flood stands behind all others beyond them', () => {
  const turns = createTurns('single')
  const flood = Array.from({ length: 1_000 }, () => turns.next('flood', now))
  const next = turns.next('other', now)
  expect(flood.filter((priority) => priority >= next)).toHaveLength(turnsPerSecond)
})

test('the turns of an account are those of the clock again when it has come to them', () => {
  const turns = createTurns('single')
  for (let taken = 0; taken < 3 * turnsPerSecond; taken++) turns.next('flood', now)
  expect(turns.next('flood', later(3))).toBe(priorityOfTurn(secondOf(later(3))))
})

test('the turns of an account are never further ahead than an hour, nor outside the lanes', () => {
  const turns = createTurns('single')
  const all = Array.from({ length: 300_000 }, () => turns.next('flood', now))
  expect(Math.min(...all.slice(-1_000))).toBe(priorityOfTurn(secondOf(later(3_600))))
  expect(all.at(-1)).toBeGreaterThanOrEqual(freshRange().min)
  expect(all[0]).toBeLessThanOrEqual(freshRange().max)
})

test('the turns of an account are owed to nobody once nothing waits', () => {
  const turns = createTurns('single')
  for (let taken = 0; taken < 1_000; taken++) turns.next('flood', now)
  turns.forget()
  expect(turns.next('flood', now)).toBe(turns.next('other', now))
})

test('the turns of an account stay in their order when the clock is set back', () => {
  const turns = createTurns('single')
  const before = turns.next('flood', now)
  expect(turns.next('flood', later(-3_600))).toBeLessThanOrEqual(before)
  expect(turns.next('other', later(-3_600))).toBeGreaterThan(before)
})
