const minuteMs = 60_000

/** From one attempt to the next; the last one again and again. Milliseconds. */
const pausesMs = [5, 10, 20, 40, 80, 160, 240].map((minutes) => minutes * minuteMs)
/** Either way, so that what was deferred together does not come back together. */
const jitter = 0.2
/** From the first attempt until it is given up. Milliseconds. RFC 5321 §4.5.4.1 would have 4 to 5 days: too late to tell anybody. */
const patienceMs = 72 * 60 * minuteMs

/** Whether a recipient is given up at `now` that is being tried since then. */
export function isOutOfPatience(since: Date, now: Date): boolean {
  return now.getTime() - since.getTime() >= patienceMs
}

/**
 * When a deferred recipient is tried again, or null: 72 h after the first attempt there is no next one.
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
  // The last attempt is at the end of the patience, not long before it.
  return new Date(Math.round(Math.min(at, deadline)))
}
