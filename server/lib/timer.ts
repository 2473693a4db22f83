/** Calls `callback` after `ms` milliseconds, unless what it answers is called before. Handed in, so that a test can let time pass. */
export type StartTimer = (callback: () => void, ms: number) => () => void

export const startSystemTimer: StartTimer = (callback, ms) => {
  const timer = setTimeout(callback, ms)
  return () => clearTimeout(timer)
}

/** Resolves after `ms` milliseconds. Does not keep the process alive by itself: what is waited for does. */
export function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, ms)).unref()
  })
}
