/*
 * Lanes are ranges of the priority of the job of an email. pg-boss claims along an index that begins with the priority,
 * so a claim limited to one range never reads past jobs of another: a million retries that are due later do not slow a
 * claim of fresh emails. Deliveries wait in flows: see flow-jobs.ts.
 *
 *   fresh    one priority for each second in which it is their turn, the earliest highest
 *   retries  one priority for each second in which they fall due, the earliest highest
 */

/** A range of priorities, both ends included. PostgreSQL type: integer. */
export type PriorityRange = { min: number; max: number }

const firstFreshPriority = 2_000_000_000
const firstRetryPriority = 1_000_000_000
/** Start of the range of seconds. It lasts until 2056. */
const epochSeconds = Date.UTC(2025, 0) / 1000
const laneSeconds = 1_000_000_000

/** Returns the priority of a retry: the first full second at which it is due. */
export function priorityOfRetry(dueAt: Date): number {
  return firstRetryPriority - offsetOf(Math.ceil(dueAt.getTime() / 1000))
}

/** Returns the priority of a fresh email whose turn is in a second of Unix time. */
export function priorityOfTurn(second: number): number {
  return firstFreshPriority - offsetOf(second)
}

/** The priorities of all fresh emails. */
export const freshRange: PriorityRange = { min: firstFreshPriority - laneSeconds + 1, max: firstFreshPriority }

/** Returns the priorities of all retries that are due at `now`. */
export function rangeOfDueRetries(now: Date): PriorityRange {
  return { min: firstRetryPriority - offsetOf(secondOf(now)), max: firstRetryPriority }
}

/** Returns the second of Unix time that `at` is in. */
export function secondOf(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}

function offsetOf(second: number): number {
  return Math.min(laneSeconds - 1, Math.max(0, second - epochSeconds))
}
