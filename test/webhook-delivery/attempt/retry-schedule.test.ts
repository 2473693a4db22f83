import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  maxRetryDelaySeconds,
  nextDelaySeconds,
  retryDelaysSeconds,
} from '../../../server/webhook-delivery/attempt/retry-schedule.ts'

test('the retry schedule waits 1 minute, 5 minutes, 30 minutes, 2 hours and 24 hours, then gives up', () => {
  const delays = [1, 2, 3, 4, 5, 6].map((position) => nextDelaySeconds(position, null))
  expect(delays).toEqual([60, 5 * 60, 30 * 60, 2 * 3600, 24 * 3600, null])
})

test('the retry schedule is lengthened by what the endpoint asks for, never shortened, and never beyond a day', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: retryDelaysSeconds.length }),
      fc.integer({ min: 0, max: 10_000_000 }),
      (position, asked) => {
        const plain = nextDelaySeconds(position, null) as number
        const delay = nextDelaySeconds(position, asked) as number
        expect(delay).toBe(Math.max(plain, Math.min(asked, maxRetryDelaySeconds)))
        expect(delay).toBeGreaterThanOrEqual(plain)
        expect(delay).toBeLessThanOrEqual(maxRetryDelaySeconds)
      },
    ),
  )
})
