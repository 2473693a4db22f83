import type { RecordChecks } from './look-up.ts'
import type { WantedRecord } from './records.ts'

/** The state of a domain between checks. */
export type Progress = {
  status: 'pending' | 'verified' | 'failed'
  /** Start of the wait for its records. Only meaningful while the status is `pending`. */
  pending_since: Date
  /** Scheduled checks in a row that did not find all required records. */
  check_count: number
  /** Time of the next scheduled check. Null: none. */
  next_check_at: Date | null
  verified_at: Date | null
}

/** The result of a check. `unclear`: some required records could not be looked up, and no other is missing. */
export type CheckResult = 'complete' | 'incomplete' | 'unclear'

/** The trigger of a check: the schedule, or a request of a client. */
export type CheckedBy = 'schedule' | 'request'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** Pause before the first check. It doubles with each check, up to `longestPauseMs`. */
export const firstPauseMs = minuteMs
export const longestPauseMs = 6 * hourMs
/** Time after which a pending domain without its records fails. */
export const patienceMs = 72 * hourMs
/** Interval of checks of a verified domain. */
export const dailyMs = 24 * hourMs
/** Pause after an unclear check of a verified domain. */
const unclearPauseMs = hourMs
/** Incomplete daily checks in a row after which a verified domain fails. */
export const missesUntilFailed = 3

/**
 * Returns the time of the next check of next keys: the pause is as long as they have waited so far, between a minute
 * and 6 hours. Returns null after 72 hours; then they are only checked together with the domain.
 */
export function nextKeyCheckAt(since: Date, at: Date): Date | null {
  const waitedMs = at.getTime() - since.getTime()
  return waitedMs >= patienceMs ? null : later(at, Math.min(Math.max(waitedMs, firstPauseMs), longestPauseMs))
}

/** Returns the result of a check. Only required records count. A failed DNS query is neither found nor missing. */
export function checkResultOf(wanted: readonly WantedRecord[], findings: RecordChecks): CheckResult {
  const statuses = wanted.filter(({ required }) => required).map(({ purpose }) => findings[purpose]?.status)
  if (statuses.every((status) => status === 'verified')) return 'complete'
  const isOpen = (status: string | undefined) => status === 'timeout' || status === 'server_failure'
  return statuses.every((status) => status === 'verified' || isOpen(status)) ? 'unclear' : 'incomplete'
}

/** Returns the state of a domain that starts to wait for its records. */
export function beginning(at: Date): Progress {
  return {
    status: 'pending',
    pending_since: at,
    check_count: 0,
    next_check_at: later(at, pauseAfter(0)),
    verified_at: null,
  }
}

/**
 * Returns the state of a domain after a check. Missing records count only in scheduled checks, so that repeated
 * requests do not make a domain fail sooner. A requested check of a failed domain starts the wait again.
 */
export function afterCheck(
  before: Progress,
  { verdict, by, at }: { verdict: CheckResult; by: CheckedBy; at: Date },
): Progress {
  if (verdict === 'complete') {
    const verified_at = before.status === 'verified' ? before.verified_at : at
    return { ...before, status: 'verified', check_count: 0, next_check_at: later(at, dailyMs), verified_at }
  }
  if (by === 'request')
    return before.status === 'failed' ? { ...beginning(at), verified_at: before.verified_at } : before
  switch (before.status) {
    case 'pending':
      return afterPending(before, at)
    case 'verified':
      return verdict === 'unclear' ? { ...before, next_check_at: later(at, unclearPauseMs) } : afterMiss(before, at)
    case 'failed':
      return { ...before, next_check_at: null }
  }
}

function afterPending(before: Progress, at: Date): Progress {
  const end = later(before.pending_since, patienceMs)
  const check_count = before.check_count + 1
  if (at >= end) return { ...before, status: 'failed', check_count, next_check_at: null }
  const next = later(at, pauseAfter(check_count))
  return { ...before, check_count, next_check_at: next < end ? next : end }
}

function afterMiss(before: Progress, at: Date): Progress {
  const check_count = before.check_count + 1
  if (check_count >= missesUntilFailed) return { ...before, status: 'failed', check_count, next_check_at: null }
  return { ...before, check_count, next_check_at: later(at, dailyMs) }
}

function pauseAfter(checks: number): number {
  return Math.min(firstPauseMs * 2 ** checks, longestPauseMs)
}

function later(at: Date, ms: number): Date {
  return new Date(at.getTime() + ms)
}
