import { addToCount } from '../lib/count-map.ts'
import type { Lane } from '../shared/lanes.ts'
import type { Transport } from '../smtp/transport.ts'

/**
 * Permits for conversations of a lane, held from planning until the transport counts the conversation itself. Unlike a
 * semaphore, taking one never waits, and the transport decides at each moment how many there are.
 */
export type DestinationPermits = {
  /** Returns the number of permits left in total. */
  room(): number
  /**
   * Takes a permit and returns its release function. Calling that again does nothing. Null: none is left, in total or
   * for the destination.
   */
  take(destination: string): (() => void) | null
  /**
   * Returns whether an email that found no permit for a destination may look again after the short wait. It allows one
   * such look per permit taken there, so that emails for a slow destination are not claimed again and again.
   */
  mayLookSoon(destination: string): boolean
}

/** Maximum early looks that a destination saves up. */
const maxLooks = 50
/** Maximum destinations with counted looks. */
const maxCounted = 10_000

export function createDestinationPermits(
  transport: Pick<Transport, 'room' | 'roomFor'>,
  lane: Lane,
): DestinationPermits {
  const taken = new Map<string, number>()
  const looks = new Map<string, number>()
  let total = 0

  function change(destination: string, by: 1 | -1): void {
    total += by
    addToCount(taken, destination, by)
  }

  const room = () => Math.max(0, transport.room(lane) - total)

  return {
    room,
    take(destination) {
      if (room() === 0 || (taken.get(destination) ?? 0) >= transport.roomFor(destination, lane)) return null
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
