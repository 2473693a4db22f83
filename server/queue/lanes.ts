/*
 * Lanes are ranges of the priority of a job. pg-boss claims along an index that begins with the
 * priority, so a claim limited to a range never reads past what waits in the others: a million
 * retries due later, or a hundred thousand deliveries to an endpoint that hangs, cost a claim of
 * fresh ones nothing.
 *
 *   fresh    one priority for all, first come first served
 *   retries  one priority for each second in which they fall due, the earliest highest
 *   slow     one priority for each slow webhook, so that it waits for itself alone
 */

/** A range of priorities, both ends included. PostgreSQL: integer. */
export type PriorityRange = { min: number; max: number }

const freshPriority = 2_000_000_000
const firstRetryPriority = 1_000_000_000
/** Retry lanes count seconds from here and last until 2056. */
const retryEpochSeconds = Date.UTC(2025, 0) / 1000

/** The priority of a retry: the second in which it is certainly due. */
function priorityOfRetry(dueAt: Date): number {
  return retryPriority(Math.ceil(dueAt.getTime() / 1000))
}

/** The priority of everything for one slow webhook; `lane` is the number of the webhook, from 1. */
function priorityOfSlow(lane: number): number {
  return -lane
}

/** Where a delivery waits: in the slow lane of its webhook, or with the retries, or with the fresh ones. */
export function priorityOf(target: { slow: boolean; lane: number }, dueAt: Date | null): number {
  if (target.slow) return priorityOfSlow(target.lane)
  return dueAt === null ? freshPriority : priorityOfRetry(dueAt)
}

export const freshRange: PriorityRange = { min: freshPriority, max: freshPriority }

/** The lanes of all retries that are due at `now`, and of no other. */
export function rangeOfDueRetries(now: Date): PriorityRange {
  return { min: retryPriority(Math.floor(now.getTime() / 1000)), max: firstRetryPriority }
}

export function rangeOfSlow(lane: number): PriorityRange {
  return { min: priorityOfSlow(lane), max: priorityOfSlow(lane) }
}

function retryPriority(second: number): number {
  const offset = Math.min(firstRetryPriority - 1, Math.max(0, second - retryEpochSeconds))
  return firstRetryPriority - offset
}
