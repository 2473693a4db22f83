import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../lib/clock.ts'

const windowMs = 60_000
const maxClients = 100_000

/** Counts the failed authentications of each client address in fixed windows of one minute, in this process. */
export type AuthFailures = {
  /** Counts a failure. Returns 0 within the limit, otherwise the milliseconds until the window ends. */
  count(address: string): number
}

/** @param perMinute Failures allowed to one address in a minute. */
export function createAuthFailures({ clock, perMinute }: { clock: Clock; perMinute: number }): AuthFailures {
  let window = 0
  let failures = new Map<string, number>()

  function untilNextWindow(): number {
    const now = clock.now().getTime()
    const current = Math.floor(now / windowMs)
    if (current !== window) {
      window = current
      failures = new Map()
    }
    return (current + 1) * windowMs - now
  }

  return {
    count(address) {
      const wait = untilNextWindow()
      const client = clientOf(address)
      const before = failures.get(client) ?? 0
      failures.delete(client)
      failures.set(client, before + 1)
      // Clients whose last failure is the oldest are dropped first.
      for (const oldest of failures.keys()) {
        if (failures.size <= maxClients) break
        failures.delete(oldest)
      }
      return before >= perMinute ? wait : 0
    },
  }
}

/**
 * Returns the key that an address is counted under. For IPv6 its first 64 bits, since one client usually has all
 * addresses of a /64.
 *
 * Source: RFC 4291 §2.5.1 (64-bit interface identifiers), §2.5.5.2 (mapped IPv4).
 */
function clientOf(address: string): string {
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
