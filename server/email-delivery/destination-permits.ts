import { addToCount } from '../lib/count-map.ts'
import type { Transport } from '../smtp/transport.ts'

/** Places at destinations, taken for conversations from when they are planned until the transport counts them. */
export type DestinationPermits = {
  /** How many are left in all. */
  room(): number
  /** Takes one at a destination, if there is one there and in all. Answers how to leave it, which does so once. */
  take(destination: string): (() => void) | null
  /**
   * Whether what finds no place at a destination may look again in a moment. As often as one was taken there, so
   * that what waits for a slow destination is not looked at all the time.
   */
  mayLookSoon(destination: string): boolean
}

/** Looks in a moment that a destination has in stock at most. */
const maxLooks = 50
/** Destinations for which they are counted. */
const maxCounted = 10_000

export function createDestinationPermits(transport: Pick<Transport, 'room' | 'roomFor'>): DestinationPermits {
  const taken = new Map<string, number>()
  const looks = new Map<string, number>()
  let total = 0

  function change(destination: string, by: 1 | -1): void {
    total += by
    addToCount(taken, destination, by)
  }

  const room = () => Math.max(0, transport.room() - total)

  return {
    room,
    take(destination) {
      if (room() === 0 || (taken.get(destination) ?? 0) >= transport.roomFor(destination)) return null
      change(destination, 1)
      if (looks.size >= maxCounted) looks.clear()
      looks.set(destination, Math.min(maxLooks, (looks.get(destination) ?? 0) + 1))
      let left = false
      return () => {
        if (!left) change(destination, -1)
        left = true
      }
    },
    mayLookSoon(destination) {
      const left = looks.get(destination) ?? 0
      if (left > 0) addToCount(looks, destination, -1)
      return left > 0
    },
  }
}
