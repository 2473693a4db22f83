import { describe, expect, test } from 'vitest'
import { type Arrival, caughtUpAfter, recoveredAfter, waitsOf } from '../../scripts/bench/arrivals.ts'

/** One event each 100 ms from 1,000 on, with how long each waited; null: it has not arrived. */
function arrivals(waits: readonly (number | null)[]): Arrival[] {
  return waits.map((wait, index) => {
    const committedAt = 1_000 + index * 100
    return { accountId: 'acct_1', committedAt, arrivedAt: wait === null ? null : committedAt + wait }
  })
}

test('what has not arrived has waited until now', () => {
  expect(waitsOf(arrivals([5, null, 7]), 2_000)).toEqual([5, 900, 7])
})

describe('an endpoint has recovered', () => {
  const after = { from: 1_100, normalMs: 50, inARow: 3 }

  test('an endpoint has recovered with the first event since then when all arrive in time', () => {
    expect(recoveredAfter(arrivals([900, 5, 5, 5]), after)).toBe(0)
  })

  test('an endpoint has recovered with the first of three in a row that arrive in time', () => {
    expect(recoveredAfter(arrivals([5, 400, 5, 5, null, 5, 50, 5, 90]), after)).toBe(400)
  })

  test('an endpoint has not recovered before three have arrived in time', () => {
    expect(recoveredAfter(arrivals([5, 5, 5]), after)).toBe(Number.POSITIVE_INFINITY)
    expect(recoveredAfter(arrivals([5, 5, 51, 5, 5]), after)).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('an endpoint has caught up', () => {
  const after = { from: 1_000, normalMs: 50 }

  test('an endpoint has caught up when the last that waited has arrived', () => {
    expect(caughtUpAfter(arrivals([300, 220, 110, 20, 400]), after)).toBe(320)
  })

  test('an endpoint has caught up within normal time when nothing waited longer', () => {
    expect(caughtUpAfter(arrivals([50, 20, 400]), after)).toBe(50)
  })

  test('an endpoint has not caught up while something waits, though later ones have arrived', () => {
    expect(caughtUpAfter(arrivals([200, 5, null, 5]), after)).toBe(200)
    expect(caughtUpAfter(arrivals([250, 5, null, 5]), after)).toBe(Number.POSITIVE_INFINITY)
  })
})
