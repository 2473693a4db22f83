/** The state of a throttle: the end of the last slot that was taken. Milliseconds. 0: none was taken. */
export type Throttle = { perHour: number; takenToMs: number }

const hourMs = 3_600_000
/** How long a slot that was not taken can still be taken: longer than a worker waits between two looks. Milliseconds. */
const slackMs = 2_000

/**
 * Takes up to `wanted` messages of a throttle at `nowMs`. Returns how many there are, and the new end of the slots.
 *
 * Each message takes a slot of (1 h + slack) / `perHour`. A slot begins at most `slackMs` before it is taken, and never
 * in the future. So the messages of any 60 minutes have slots that begin within 60 minutes and the slack: `perHour` at
 * most. This is the generic cell rate algorithm (ITU-T I.371) with the burst taken out of the rate.
 */
export function takeSlots({ perHour, takenToMs }: Throttle, nowMs: number, wanted: number) {
  const slotMs = (hourMs + slackMs) / perHour
  const firstMs = Math.max(takenToMs, nowMs - slackMs)
  const there = firstMs > nowMs ? 0 : Math.floor((nowMs - firstMs) / slotMs) + 1
  const count = Math.min(wanted, there)
  return { count, takenToMs: count === 0 ? takenToMs : firstMs + count * slotMs }
}
