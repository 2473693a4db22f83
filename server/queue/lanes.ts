/*
 * Lanes are ranges of the priority of a job. pg-boss claims along an index that begins with the
 * priority, so a claim limited to a range never reads past what waits in the others: a million
 * retries due later, or a hundred thousand deliveries to an endpoint that hangs, cost a claim of
 * fresh ones nothing.
 *
 *   fresh    one priority for each second in which it is their turn, the earliest highest
 *   retries  one priority for each second in which they fall due, the earliest highest
 *   slow     one priority for each slow webhook, so that it waits for itself alone
 */

/** A range of priorities, both ends included. PostgreSQL: integer. */
export type PriorityRange = { min: number; max: number }

const firstFreshPriority = 2_000_000_000
const firstRetryPriority = 1_000_000_000
/** Lanes of seconds. They count from here and last until 2056. */
const epochSeconds = Date.UTC(2025, 0) / 1000
const laneSeconds = 1_000_000_000

/** The priority of a retry: the second in which it is certainly due. */
function priorityOfRetry(dueAt: Date): number {
  return firstRetryPriority - offsetOf(Math.ceil(dueAt.getTime() / 1000))
}

/** The priority of everything for one slow webhook; `lane` is the number of the webhook, from 1. */
export function priorityOfSlow(lane: number): number {
  return -lane
}

/** Where a delivery waits: in the slow lane of its webhook, or with the retries, or, due at once, first of the fresh ones. */
export function priorityOf(target: { slow: boolean; lane: number }, dueAt: Date | null): number {
  if (target.slow) return priorityOfSlow(target.lane)
  return dueAt === null ? firstFreshPriority : priorityOfRetry(dueAt)
}

/** Where a fresh delivery waits whose turn is in a second of Unix time. */
export function priorityOfTurn(target: { slow: boolean; lane: number }, second: number): number {
  return target.slow ? priorityOfSlow(target.lane) : firstFreshPriority - offsetOf(second)
}

/** The lanes of all fresh deliveries. */
export const freshRange: PriorityRange = { min: firstFreshPriority - laneSeconds + 1, max: firstFreshPriority }

/** Fresh deliveries with turns in a second of Unix time or before, and what was handed back; null: that alone. */
export function rangeOfTurns(second: number | null): PriorityRange {
  return { min: firstFreshPriority - (second === null ? 0 : offsetOf(second)), max: freshRange.max }
}

/** Fresh deliveries that have turns: all but those that were handed back. */
export const rangeOfAllTurns: PriorityRange = { min: freshRange.min, max: freshRange.max - 1 }

/** The second of Unix time whose turns have this priority. */
export function secondOfTurns(priority: number): number {
  return epochSeconds + firstFreshPriority - priority
}

/** The lanes of all retries that are due at `now`, and of no other. */
export function rangeOfDueRetries(now: Date): PriorityRange {
  return { min: firstRetryPriority - offsetOf(secondOf(now)), max: firstRetryPriority }
}

export function rangeOfSlow(lane: number): PriorityRange {
  return { min: priorityOfSlow(lane), max: priorityOfSlow(lane) }
}

/** The second of Unix time that `at` is in. */
export function secondOf(at: Date): number {
  return Math.floor(at.getTime() / 1000)
}

function offsetOf(second: number): number {
  return Math.min(laneSeconds - 1, Math.max(0, second - epochSeconds))
}
