import fc from 'fast-check'
import { expect, test } from 'vitest'
import { nextToRender } from '../../server/campaigns/batches.ts'

/** Renders as a turn does. Returns how many were rendered in all, and how long that took. */
function turnOf(people: number, msOfEach: (index: number) => number) {
  let [done, takenMs] = [0, 0]
  while (done < people) {
    const count = Math.min(nextToRender(done, takenMs), people - done)
    if (count === 0) break
    for (let n = 0; n < count; n++) takenMs += msOfEach(done + n)
    done += count
  }
  return { done, takenMs }
}

test('a turn renders for eight people first, and then for as many as its second has room for', () => {
  expect(nextToRender(0, 0)).toBe(8)
  expect(nextToRender(8, 80)).toBe(92)
  expect(nextToRender(8, 0.1)).toBeGreaterThan(200)
  expect(nextToRender(8, 1_000)).toBe(0)
  expect(nextToRender(8, 5_000)).toBe(0)
})

test('content that takes as long for each person fills the second, whatever it takes, and goes over it by eight people', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 * 64 }), (parts) => {
      // Sums of such fractions are exact.
      const ms = parts / 64
      const { done, takenMs } = turnOf(200, () => ms)
      expect(takenMs).toBeLessThanOrEqual(Math.max(1_000 + ms, 8 * ms))
      if (done < 200 && ms < 125) expect(takenMs).toBeGreaterThan(1_000 - 2 * ms)
    }),
  )
})

test('every turn ends, and renders for somebody', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.array(fc.nat(700), { minLength: 200, maxLength: 200 }),
      (people, ms) => {
        expect(turnOf(people, (index) => ms[index] ?? 0).done).toBeGreaterThanOrEqual(Math.min(people, 8))
      },
    ),
  )
})
