import { TestClock } from 'pg-boss'
import { onTestFinished, vi } from 'vitest'
import type { Clock } from '../../server/lib/clock.ts'

/**
 * Time that stands still until a test moves it, for the service and for its queue. All three parts
 * are handed to the service together.
 */
export type TestTime = {
  clock: Clock
  queueClock: TestClock
  /** Has the sessions of the service read the queue's moved time. */
  sessionOptions: string
  /** Jumps to a time. What pg-boss does by timers and is overdue then is done once. */
  set(time: Date): Promise<void>
  /** Moves on by so many milliseconds. */
  advance(ms: number): Promise<void>
}

/** @param start Default: the real time. */
export function createTestTime(start: Date = new Date()): TestTime {
  const queueClock = new TestClock(start)

  async function set(time: Date): Promise<void> {
    await queueClock.setTime(time)
    await queueClock.tick(0)
  }

  return {
    clock: { now: () => new Date(queueClock.now()) },
    queueClock,
    sessionOptions: '-c pgboss.test_clock=on',
    set,
    advance: (ms) => set(new Date(queueClock.now() + ms)),
  }
}

/**
 * Stops the monotonic clock of this process until it is started again, at the latest when the test ends: meanwhile no
 * request counts as hanging and no line as standing still, however slow the machine is. Returns what starts it.
 */
export function stopMonotonicClock(): () => void {
  const stopped = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  const start = () => stopped.mockRestore()
  onTestFinished(start)
  return start
}

/**
 * Has the monotonic clock of this process move only as the test says, until the test ends: what takes how long is the
 * test's to decide.
 */
export function holdMonotonicClock(): { advance(ms: number): void } {
  // A whole number: sums of it are exact.
  let now = Math.ceil(performance.now())
  const held = vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => held.mockRestore())
  return {
    advance(ms) {
      now += ms
    },
  }
}
