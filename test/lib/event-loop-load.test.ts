import { expect, test } from 'vitest'
import { createEventLoopLoad } from '../../server/lib/event-loop-load.ts'

/** Measures an event loop that is idle and active as it is told. */
function createLoop() {
  let total = { idle: 0, active: 0, utilization: 0 }
  return {
    pass(idle: number, active: number) {
      total = { idle: total.idle + idle, active: total.active + active, utilization: 0 }
    },
    measure(since = { idle: 0, active: 0, utilization: 0 }) {
      const [idle, active] = [total.idle - since.idle, total.active - since.active]
      return { idle, active, utilization: active / Math.max(1, idle + active) }
    },
  }
}

test('a process counts as busy when its event loop was idle for less than a tenth of the time', () => {
  const loop = createLoop()
  const isBusy = createEventLoopLoad(loop.measure)
  loop.pass(9, 91)
  expect(isBusy()).toBe(true)
  loop.pass(11, 89)
  expect(isBusy()).toBe(false)
})

test('no time shorter than 100 ms is judged, and nothing of before the last look', () => {
  const loop = createLoop()
  const isBusy = createEventLoopLoad(loop.measure)
  loop.pass(0, 99)
  expect(isBusy()).toBe(false)
  loop.pass(0, 1)
  expect(isBusy()).toBe(true)
  loop.pass(99, 0)
  expect(isBusy()).toBe(true)
  loop.pass(1, 0)
  expect(isBusy()).toBe(false)
})
