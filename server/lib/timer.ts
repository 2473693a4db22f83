/**
 * Calls `callback` after `ms` milliseconds and returns a function that cancels the timer. Passed in, so that a test can
 * let time pass.
 */
export type StartTimer = (callback: () => void, ms: number) => () => void

export const startSystemTimer: StartTimer = (callback, ms) => {
  const timer = setTimeout(callback, ms)
  return () => clearTimeout(timer)
}

/** Resolves after `ms` milliseconds. The timer does not keep the process alive. */
export function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref()
  })
}
