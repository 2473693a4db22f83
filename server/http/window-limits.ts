import type { Clock } from '../lib/clock.ts'
import type { RateLimitVerdict } from './rate-limit.ts'
import { windowMs } from './rate-limit-windows.ts'

const maxNames = 100_000

/** Limits requests by a name, such as a user or a client address, in fixed windows of one minute. In this process. */
export type WindowLimits = {
  /** Counts one request, within the limit or beyond it. */
  take(name: string): RateLimitVerdict
}

/** @param perMinute Requests allowed to one name in a minute. */
export function createWindowLimits({ clock, perMinute }: { clock: Clock; perMinute: number }): WindowLimits {
  let window = 0
  let counts = new Map<string, number>()

  return {
    take(name) {
      const current = Math.floor(clock.now().getTime() / windowMs)
      if (current !== window) {
        window = current
        counts = new Map()
      }
      const count = (counts.get(name) ?? 0) + 1
      counts.delete(name)
      counts.set(name, count)
      // Names that were used the longest ago are dropped first.
      for (const oldest of counts.keys()) {
        if (counts.size <= maxNames) break
        counts.delete(oldest)
      }
      const resetAt = (current + 1) * windowMs
      return { allowed: count <= perMinute, limit: perMinute, remaining: Math.max(0, perMinute - count), resetAt }
    },
  }
}
