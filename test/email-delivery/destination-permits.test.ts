import { expect, test } from 'vitest'
import { createDestinationPermits } from '../../server/email-delivery/destination-permits.ts'

/** A transport with so much room, of which so much is at any one destination. */
function places(room: number, roomFor = room) {
  return createDestinationPermits({ room: () => room, roomFor: () => roomFor }, 'single')
}

test('places are as many at a destination as it has room for, and another destination has its own', () => {
  const { take } = places(10, 2)
  expect([take('a.test'), take('a.test'), take('a.test')]).toEqual([expect.any(Function), expect.any(Function), null])
  expect(take('b.test')).not.toBeNull()
})

test('all destinations together have no more places than there is room for', () => {
  const { take, room } = places(3)
  expect(['a.test', 'b.test', 'c.test'].map(take)).not.toContain(null)
  expect(room()).toBe(0)
  expect(take('d.test')).toBeNull()
})

test('a place that is left is free for another, once', () => {
  const { take, room } = places(2)
  const leave = take('a.test')
  take('b.test')
  leave?.()
  leave?.()
  expect(room()).toBe(1)
  expect(take('c.test')).not.toBeNull()
  expect(take('c.test')).toBeNull()
})

test('what finds none may look again soon as often as one was taken there', () => {
  const { take, mayLookSoon } = places(100, 2)
  expect(mayLookSoon('a.test')).toBe(false)
  expect([take('a.test'), take('a.test'), take('a.test')]).toEqual([expect.any(Function), expect.any(Function), null])
  expect([mayLookSoon('a.test'), mayLookSoon('a.test'), mayLookSoon('a.test')]).toEqual([true, true, false])
  expect(mayLookSoon('b.test')).toBe(false)
})
