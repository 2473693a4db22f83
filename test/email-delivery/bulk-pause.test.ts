import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createBulkPause } from '../../server/email-delivery/bulk-pause.ts'
import { createTestTimer } from '../support/timer.ts'

/** A pause in moved time, of one millisecond at a time. */
function createWorld() {
  const timer = createTestTimer()
  let now = 0
  const pause = createBulkPause({ now: () => now, startTimer: timer.startTimer })
  return {
    pause,
    timer,
    pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 1) {
        now += 1
        timer.advance(1)
      }
    },
    /** Returns whether work in bulk may begin now. */
    async isOver() {
      return (await Promise.race([pause.over(), Promise.resolve('paused')])) !== 'paused'
    },
  }
}

test('work in bulk waits until no email that is sent singly is under way', async () => {
  const { pause, timer, pass, isOver } = createWorld()
  expect(await isOver()).toBe(true)
  const [endFirst, endSecond] = [pause.begin(), pause.begin()]
  const over = pause.over()
  pass(20)
  endFirst()
  endFirst()
  expect(await isOver()).toBe(false)
  endSecond()
  await over
  expect(await isOver()).toBe(true)
  expect(timer.waiting).toBe(0)
})

test('work in bulk goes on after 100 ms, however long an email is under way', async () => {
  const { pause, pass, isOver } = createWorld()
  pause.begin()
  pass(99)
  expect(await isOver()).toBe(false)
  pass(1)
  expect(await isOver()).toBe(true)
})

test('steps in bulk are a quarter as large until nothing was sent singly for five seconds', () => {
  const { pause, pass } = createWorld()
  expect(pause.atOnce(200)).toBe(200)
  pause.begin()()
  expect([pause.atOnce(200), pause.atOnce(1)]).toEqual([50, 1])
  pass(4_999)
  expect(pause.atOnce(200)).toBe(50)
  pass(1)
  expect(pause.atOnce(200)).toBe(200)
})

test('work in bulk gets a quarter of the time, whatever is sent singly', async () => {
  const arrivals = fc.array(
    fc.record({ afterMs: fc.integer({ min: 0, max: 40 }), takesMs: fc.integer({ min: 1, max: 400 }) }),
    {
      minLength: 20,
      maxLength: 100,
    },
  )
  await fc.assert(
    fc.asyncProperty(arrivals, async (emails) => {
      const { pause, pass, isOver } = createWorld()
      const ends: { at: number; end: () => void }[] = []
      let [at, free] = [0, 0]
      for (const { afterMs, takesMs } of emails) {
        for (let passed = 0; passed < afterMs; passed += 1) {
          if (await isOver()) free += 1
          pass(1)
          at += 1
          for (const one of ends) if (one.at === at) one.end()
        }
        ends.push({ at: at + takesMs, end: pause.begin() })
      }
      // The last pause may not have been followed by its share yet.
      expect(free).toBeGreaterThanOrEqual((at - 100) / 4 - 1)
    }),
    { numRuns: 50 },
  )
})
