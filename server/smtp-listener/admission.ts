import { isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../lib/clock.ts'
import { addToCount } from '../lib/count-map.ts'

/** Limits on the connections of one client address. */
export type ConnectionLimits = {
  /** Maximum open connections of one address. */
  connectionsPerAddress: number
  /** Maximum new connections of one address in a minute. */
  connectionsPerMinute: number
}

/** Limits the connections of each address. */
export type ConnectionLimiter = {
  /** Counts a new connection. Returns false if it exceeds a limit. After true, the caller must call `leave` later. */
  enter(address: string): boolean
  leave(address: string): void
}

const minuteMs = 60_000

/** Creates a limiter. It forgets addresses without open connections that opened none in the current minute. */
export function createConnectionLimiter(limits: ConnectionLimits, clock: Clock): ConnectionLimiter {
  const open = new Map<string, number>()
  const opened = new Map<string, number>()
  let minute = 0

  return {
    enter(address) {
      const key = networkOf(address)
      const now = Math.floor(clock.now().getTime() / minuteMs)
      if (now !== minute) opened.clear()
      minute = now
      const isFull = (open.get(key) ?? 0) >= limits.connectionsPerAddress
      if (isFull || (opened.get(key) ?? 0) >= limits.connectionsPerMinute) return false
      addToCount(open, key, 1)
      addToCount(opened, key, 1)
      return true
    },
    leave(address) {
      addToCount(open, networkOf(address), -1)
    },
  }
}

/** Returns the address, or the first 64 bits of an IPv6 address: one client may own the whole /64. RFC 4291 §2.5.1. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  return ipaddr.IPv6.parse(address).parts.slice(0, 4).join(':')
}
