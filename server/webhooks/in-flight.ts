import { addToCount } from '../lib/count-map.ts'

/** Counts what is in flight, by name. */
export type InFlight = {
  /** Returns a release function, or null when `max` of the name are in flight. Call it once. */
  enter(name: string): (() => void) | null
}

export function createInFlight(max: number): InFlight {
  const counts = new Map<string, number>()
  return {
    enter(name) {
      if ((counts.get(name) ?? 0) >= max) return null
      addToCount(counts, name, 1)
      return () => addToCount(counts, name, -1)
    },
  }
}
