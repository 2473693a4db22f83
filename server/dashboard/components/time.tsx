import { useSyncExternalStore } from 'react'

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
/** With the zone, to be shown on hover. */
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'long' })

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** Beyond this a date says more than a number of days. */
const relativeWithinMs = 14 * 86_400_000

/**
 * Returns `at` relative to `nowMs`, such as "3 minutes ago" or "in 2 days"; beyond 14 days, the date. A time in the
 * future is rounded to the nearest unit (59 seconds: "in 1 minute"), a time in the past is rounded down.
 */
function relativeTime(at: string, nowMs: number): string {
  const distance = Date.parse(at) - nowMs
  const length = Math.abs(distance)
  if (length > relativeWithinMs) return day.format(new Date(at))
  const round = distance > 0 ? Math.round : Math.trunc
  for (const [unit, ms] of units) {
    const count = round(distance / ms)
    if (count !== 0) return relative.format(count, unit)
  }
  return distance > 0 ? 'in a moment' : 'just now'
}

const tickMs = 15_000
/** A time that comes onto the screen is compared with a present that is not older than this. Milliseconds. */
const staleMs = 500
const listeners = new Set<() => void>()
let nowMs = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function tick(): void {
  nowMs = Date.now()
  for (const told of listeners) told()
}

/** One timer for all times on the screen. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  timer ??= setInterval(tick, tickMs)
  if (Date.now() - nowMs > staleMs) tick()
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

type Props = {
  at: string | null
  /** Shown for null. Default: a dash. */
  none?: string
  /** Whether it is when something happens next: then it is never told as past. Default: no. */
  isAhead?: boolean
}

/** A time relative to now, with the exact one of the reader's zone on hover. */
export function Time({ at, none = '–', isAhead = false }: Props) {
  const now = useSyncExternalStore(subscribe, () => nowMs)
  if (at === null) return <span className="dimmed">{none}</span>
  // An event that arrived live since the last tick is later than `now`, but not in the future.
  const present = Date.parse(at) > now ? Date.now() : now
  return (
    <time dateTime={at} title={full.format(new Date(at))} className="time">
      {isAhead && Date.parse(at) <= present ? 'in a moment' : relativeTime(at, present)}
    </time>
  )
}

/** The exact time in the reader's zone. */
export function ExactTime({ at }: { at: string }) {
  return (
    <time dateTime={at} title={full.format(new Date(at))} className="time">
      {exactTime(at)}
    </time>
  )
}

/** Returns the exact time in the reader's zone, for a label. */
export function exactTime(at: string): string {
  return exact.format(new Date(at))
}
