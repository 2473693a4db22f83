import fc from 'fast-check'
import { expect, test } from 'vitest'
import { takeSlots } from '../../server/campaigns/throttle.ts'

const hourMs = 3_600_000

/** Takes messages at times, and returns the time of each. */
function sendAt(times: readonly { afterMs: number; wanted: number }[], perHour: number): number[] {
  let throttle = { perHour, takenToMs: 0 }
  let now = Date.UTC(2026, 2, 1)
  const sent: number[] = []
  for (const { afterMs, wanted } of times) {
    now += afterMs
    const { count, takenToMs } = takeSlots(throttle, now, wanted)
    throttle = { perHour, takenToMs }
    for (let n = 0; n < count; n++) sent.push(now)
  }
  return sent
}

test('no 60 minutes have more messages than the throttle allows, whenever they are taken', () => {
  const looks = fc.array(
    fc.record({ afterMs: fc.oneof(fc.nat(500), fc.nat(10_000), fc.nat(2 * hourMs)), wanted: fc.nat(300) }),
    { maxLength: 200 },
  )
  fc.assert(
    fc.property(
      looks,
      fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1_000_000 })),
      (times, perHour) => {
        const sent = sendAt(times, perHour)
        let first = 0
        for (const [index, at] of sent.entries()) {
          while ((sent[first] ?? at) <= at - hourMs) first += 1
          expect(index - first + 1).toBeLessThanOrEqual(perHour)
        }
      },
    ),
  )
})

test.each([1, 7, 100, 3_600, 100_000])('a worker that looks often sends nearly all of %i an hour', (perHour) => {
  const times = Array.from({ length: 20 * 3_600 }, () => ({ afterMs: 250, wanted: 200 }))
  expect(sendAt(times, perHour).length).toBeGreaterThanOrEqual(Math.floor(perHour * 5 * 0.999))
})
