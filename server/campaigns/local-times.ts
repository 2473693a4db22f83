import { instantOf, isTimeZone, mostAheadMs } from '../lib/time-zones.ts'
import { mapYielding } from '../lib/yielding.ts'

/*
 * A local time of a campaign, as it is stored: `2026-12-01T09:00:00`.
 */

/** Reads a local time of a request, with or without seconds. Null: there is no such day. */
export function readLocalTime(given: string): string | null {
  const text = given.length === 16 ? `${given}:00` : given
  const ms = msOf(text)
  return Number.isNaN(ms) || new Date(ms).toISOString() !== `${text}.000Z` ? null : text
}

function msOf(localTime: string): number {
  return Date.parse(`${localTime}Z`)
}

/** Returns when a local time comes in a zone. */
export function sendTimeIn(zone: string, localTime: string): Date {
  return new Date(instantOf(msOf(localTime), zone))
}

/** Returns when a local time comes in the first of all zones, UTC+14. */
export function firstSendTime(localTime: string): Date {
  return new Date(msOf(localTime) - mostAheadMs)
}

/** When people may get a campaign: `times` has those of `zones`, in the same order. */
export type SendTimes = { zones: string[]; times: Date[]; fallback: Date }

/** Returns when a local time comes in each of the zones that there are. Those that are unknown are left out. */
export async function sendTimesOf(
  localTime: string,
  { zones, fallback }: { zones: readonly string[]; fallback: string },
): Promise<SendTimes> {
  // Names are hostile, and each one that is new takes the runtime a while.
  const known = await mapYielding(zones, (zone) =>
    isTimeZone(zone) ? [{ zone, time: sendTimeIn(zone, localTime) }] : [],
  )
  const found = known.flat()
  return {
    zones: found.map(({ zone }) => zone),
    times: found.map(({ time }) => time),
    fallback: sendTimeIn(fallback, localTime),
  }
}
