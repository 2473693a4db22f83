import type { RecordChecks } from './look-up.ts'
import type { WantedRecord } from './records.ts'

/** Where a domain stands between its checks. */
export type Progress = {
  status: 'pending' | 'verified' | 'failed'
  /** Since when it waits for its records. Of meaning while it does. */
  pending_since: Date
  /** Scheduled checks in a row that did not find all that is required. */
  check_count: number
  /** Null: not checked by itself. */
  next_check_at: Date | null
  verified_at: Date | null
}

/** `unclear`: nothing that is required is missing as far as could be seen, but not all could be. */
export type CheckResult = 'complete' | 'incomplete' | 'unclear'

/** Who wanted a check: the schedule, or somebody who presses a button. */
export type CheckedBy = 'schedule' | 'request'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** The pause before the first check; it doubles with each. */
export const firstPauseMs = minuteMs
export const longestPauseMs = 6 * hourMs
/** How long records are waited for. */
export const patienceMs = 72 * hourMs
/** How often a verified domain is checked. */
export const dailyMs = 24 * hourMs
/** How often where the name servers could not be asked. */
const unclearPauseMs = hourMs
/** Daily checks in a row after which a verified domain is one no more. */
export const missesUntilFailed = 3

/**
 * When the records of keys that wait to sign are looked for again: after as long as they have waited, a minute at
 * least and 6 hours at most. Null after 72 hours: then they are looked for with the domain alone.
 */
export function nextKeyCheckAt(since: Date, at: Date): Date | null {
  const waitedMs = at.getTime() - since.getTime()
  return waitedMs >= patienceMs ? null : later(at, Math.min(Math.max(waitedMs, firstPauseMs), longestPauseMs))
}

/** What is required counts; a record the name servers did not tell of was neither found nor missed. */
export function checkResultOf(wanted: readonly WantedRecord[], findings: RecordChecks): CheckResult {
  const statuses = wanted.filter(({ required }) => required).map(({ purpose }) => findings[purpose]?.status)
  if (statuses.every((status) => status === 'verified')) return 'complete'
  const isOpen = (status: string | undefined) => status === 'timeout' || status === 'server_failure'
  return statuses.every((status) => status === 'verified' || isOpen(status)) ? 'unclear' : 'incomplete'
}

/** A domain whose records are waited for from now on. */
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
 * Where a domain stands after a check. What is missing counts against it only in a scheduled check: who
 * asks again and again must not make it fail sooner. Asking for one that had failed begins anew.
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
