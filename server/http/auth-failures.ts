import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../lib/clock.ts'
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
      const { allowed, resetAt } = limits.take(clientOf(address))
      return allowed ? 0 : resetAt - clock.now().getTime()
    },
  }
}

/**
 * Returns the name that an address is counted under. For IPv6 its first 64 bits, since one client usually has all
 * addresses of a /64.
 *
 * Source: RFC 4291 §2.5.1 (64-bit interface identifiers), §2.5.5.2 (mapped IPv4).
 */
export function clientOf(address: string): string {
  if (isIPv4(address)) return address
  // The client has already disconnected, or a proxy sent an invalid address.
  if (!isIPv6(address)) return 'unknown'
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')
}
