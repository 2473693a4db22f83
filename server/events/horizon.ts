import { firstIdAt } from '../ids.ts'
import type { Underway } from './queries.ts'

/*
 * Identifiers are made before the commit, so an event can appear below one that was shown already.
 * Who reads oldest first and remembers the last event would miss it. So such a list ends before the
 * first identifier a transaction in flight could still bring.
 */

/** How far the clocks of the processes may be apart. Milliseconds. */
const clockSkewMs = 1_000

export type Look = Underway & { at: Date }

/**
 * The first identifier that must not be shown yet, or null when all may be.
 *
 * All may be when nothing was in flight before and after the read, and nothing began to write
 * between the two: then whoever has made an identifier had committed before the read.
 *
 * @param before What was in flight before the events were read, at that time of our clock.
 * @param after What was in flight after.
 */
export function firstUnsafeId(before: Look, after: Underway): string | null {
  const quiet =
    before.oldestAgeMs === null && after.oldestAgeMs === null && before.nextTransactionId === after.nextTransactionId
  if (quiet) return null
  return firstIdAt('event', new Date(before.at.getTime() - (before.oldestAgeMs ?? 0) - clockSkewMs))
}
