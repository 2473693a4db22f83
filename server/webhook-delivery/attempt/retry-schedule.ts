/** Seconds to wait after the first failed attempt, the second, …: 1 min, 5 min, 30 min, 2 h, 24 h. */
export const retryDelaysSeconds = [60, 300, 1_800, 7_200, 86_400] as const

/** An endpoint's `Retry-After` can lengthen a delay up to this. Seconds. */
export const maxRetryDelaySeconds = 86_400

/** A webhook that fails for this long without a success is disabled. Milliseconds: five days. */
export const failingLimitMs = 5 * 24 * 3_600_000

/** Failed attempts in that time, without which it is not: a few events in a week say little of an endpoint. */
export const failingLimitAttempts = 10

/**
 * Seconds until the next attempt, or null when the schedule has come to its end.
 *
 * @param position How many attempts of the schedule failed so far, the latest included: 1, 2, …
 * @param retryAfterSeconds What the endpoint asked for; it can only lengthen the delay.
 */
export function nextDelaySeconds(position: number, retryAfterSeconds: number | null): number | null {
  const delay = retryDelaysSeconds[position - 1]
  if (delay === undefined) return null
  return Math.max(delay, Math.min(retryAfterSeconds ?? 0, maxRetryDelaySeconds))
}
