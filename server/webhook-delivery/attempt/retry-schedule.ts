/** Seconds to wait after the first failed attempt, the second, …: 1 min, 5 min, 30 min, 2 h, 24 h. */
export const retryDelaysSeconds = [60, 300, 1_800, 7_200, 86_400] as const

/** Upper bound for the delay that an endpoint can ask for with `Retry-After`. Seconds. */
export const maxRetryDelaySeconds = 86_400

/**
 * Returns the seconds until the next attempt. Null: the schedule is at its end.
 *
 * @param position Failed attempts of the schedule so far, the latest included: 1, 2, …
 * @param retryAfterSeconds The delay that the endpoint asked for. It can only lengthen the delay.
 */
export function nextDelaySeconds(position: number, retryAfterSeconds: number | null): number | null {
  const delay = retryDelaysSeconds[position - 1]
  if (delay === undefined) return null
  return Math.max(delay, Math.min(retryAfterSeconds ?? 0, maxRetryDelaySeconds))
}
