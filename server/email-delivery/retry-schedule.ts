const minuteMs = 60_000

/** Pauses between attempts; the last one repeats. Milliseconds. */
const pausesMs = [5, 10, 20, 40, 80, 160, 240].map((minutes) => minutes * minuteMs)
/** Random change of a pause, up to this fraction either way, so that recipients deferred together are spread out. */
const jitter = 0.2
/**
 * Time from the first attempt until the service gives up. Milliseconds. RFC 5321 §4.5.4.1 asks for 4 to 5 days, which
 * is too late to tell the sender.
 */
const patienceMs = 72 * 60 * minuteMs

/** Returns whether a recipient that is tried since `since` is given up at `now`. */
export function isOutOfPatience(since: Date, now: Date): boolean {
  return now.getTime() - since.getTime() >= patienceMs
}

/**
 * Returns when a deferred recipient is tried again; null: 72 hours after the first attempt there is no next one.
 *
 * @param attempts made so far, at least 1
 * @param random from 0 to below 1
 */
export function nextAttemptAt(
  { attempts, firstAttemptAt, now }: { attempts: number; firstAttemptAt: Date; now: Date },
  random: number,
): Date | null {
  const deadline = firstAttemptAt.getTime() + patienceMs
  if (isOutOfPatience(firstAttemptAt, now)) return null
  const pause = pausesMs[Math.min(attempts, pausesMs.length) - 1] ?? minuteMs
  const at = now.getTime() + pause * (1 - jitter + 2 * jitter * random)
  // The last attempt is at the end of the 72 hours, not long before it.
  return new Date(Math.round(Math.min(at, deadline)))
}
