import type { Lane } from '../shared/lanes.ts'

/*
 * The jobs of emails wait in ranges of priorities. pg-boss claims along an index that begins with the priority, so a
 * claim limited to one range never reads past jobs of another: a million retries that are due later do not slow a claim
 * of fresh emails, nor does a campaign. Deliveries wait in flows: see flow-jobs.ts.
 *
 *   single  fresh    one priority for each second in which it is their turn, the earliest highest
 *           retries  one priority for each second in which they fall due, the earliest highest
 *   bulk    fresh    the same, below all that is single
 *           retries
 */

/** A range of priorities, both ends included. PostgreSQL type: integer. */
export type PriorityRange = { min: number; max: number }

const firstFreshPriority = 2_000_000_000
const firstRetryPriority = 1_000_000_000
/** How far the priorities of a lane lie below those of `single`. */
const belowSingle: Readonly<Record<Lane, number>> = { single: 0, bulk: 2_000_000_000 }
/** The lowest priority of the lane `single`. */
export const lowestSingle = 1

/** Start of the range of seconds. It lasts until 2056. */
const epochSeconds = Date.UTC(2025, 0) / 1000
const rangeSeconds = 1_000_000_000

/** Returns the priority of a retry: the first full second at which it is due. */
export function priorityOfRetry(dueAt: Date, lane: Lane = 'single'): number {
  return firstRetryPriority - belowSingle[lane] - offsetOf(Math.ceil(dueAt.getTime() / 1000))
}

/** Returns the priority of a fresh email whose turn is in a second of Unix time. */
export function priorityOfTurn(second: number, lane: Lane = 'single'): number {
  return firstFreshPriority - belowSingle[lane] - offsetOf(second)
}

/** Returns the priorities of all fresh emails of a lane. */
export function freshRange(lane: Lane = 'single'): PriorityRange {
  const max = firstFreshPriority - belowSingle[lane]
  return { min: max - rangeSeconds + 1, max }
}

/** Returns the priorities of all retries of a lane that are due at `now`. */
export function rangeOfDueRetries(now: Date, lane: Lane = 'single'): PriorityRange {
  const max = firstRetryPriority - belowSingle[lane]
  return { min: max - offsetOf(secondOf(now)), max }
}

/** Returns the second of Unix time that `at` is in. */
export function secondOf(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}

function offsetOf(second: number): number {
  return Math.min(rangeSeconds - 1, Math.max(0, second - epochSeconds))
}
