/** Calls `callback` after `ms` milliseconds, unless what it answers is called before. Handed in, so that a test can let time pass. */
export type StartTimer = (callback: () => void, ms: number) => () => void

export const startSystemTimer: StartTimer = (callback, ms) => {
  const timer = setTimeout(callback, ms)
  return () => clearTimeout(timer)
}
