import type { Clock } from '../lib/clock.ts'
import { networkOf } from './client-address.ts'
import { createWindowLimits } from './window-limits.ts'

/** Counts the failed authentications of each client address in fixed windows of one minute, in this process. */
export type AuthFailures = {
  /** Counts a failure. Returns 0 within the limit, otherwise the milliseconds until the window ends. */
  count(address: string): number
}

/** @param perMinute Failures allowed to one address in a minute. */
export function createAuthFailures({ clock, perMinute }: { clock: Clock; perMinute: number }): AuthFailures {
  const limits = createWindowLimits({ clock, perMinute })
  return {
    count(address) {
      const { allowed, resetAt } = limits.take(networkOf(address))
      return allowed ? 0 : resetAt - clock.now().getTime()
    },
  }
}
