import type { Response } from 'express'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { callerOf } from './caller.ts'
import type { RouteGate } from './endpoint.ts'
import { leaseRequests, windowMs } from './rate-limit-windows.ts'

/** Requests leased ahead of need at most: what one statement is worth. */
const maxLease = 1_024
/** The part of what is left that is leased ahead of need at most, so that little is out of others' reach. */
const leaseShare = 16
/** From this size on, leases are taken before they are needed, so that no request waits for one. */
const aheadFrom = 16

export type RateLimitVerdict = {
  allowed: boolean
  /** Requests the account may send in the window. */
  limit: number
  /** Requests left in the window as far as this process knows: others may have used some of them. */
  remaining: number
  /** When the window ends. Milliseconds since 1970. */
  resetAt: number
}

type Account = { accountId: string; plan: string }

export type RateLimiter = {
  /** Counts one request of the account, or refuses it: at once, unless the database must be asked. */
  take(account: Account): RateLimitVerdict | Promise<RateLimitVerdict>
}

export type RateLimiterOptions = {
  db: Db
  clock: Clock
  /** Requests a minute, by plan. */
  limits: Readonly<Record<string, number>>
}

/** What this process knows of one account in one window. */
type Share = {
  accountId: string
  /** When the window began. */
  start: number
  limit: number
  /** Leased and not used yet. */
  held: number
  /** Left for all processes, without those held. */
  left: number
  /** The size of the last lease. */
  leased: number
  waiting: number
  leasing: Promise<void> | undefined
}

/**
 * Limits the requests of each account in fixed windows of one minute, in all processes together and
 * never beyond the limit. Processes lease requests from the database: few at first and near the limit,
 * more to those who use them fast, and then the next ones when half of the last are used. What a process
 * has leased and does not use is lost with the window.
 * An account whose plan is not in `limits` has the smallest of them.
 */
export function createRateLimiter({ db, clock, limits }: RateLimiterOptions): RateLimiter {
  const smallest = Math.min(...Object.values(limits))
  let currentStart = 0
  let shares = new Map<string, Share>()

  function shareOf({ accountId, plan }: Account): Share {
    const limit = Object.hasOwn(limits, plan) ? (limits[plan] ?? smallest) : smallest
    const start = Math.floor(clock.now().getTime() / windowMs) * windowMs
    if (start !== currentStart) {
      currentStart = start
      shares = new Map()
    }
    const known = shares.get(accountId)
    if (known !== undefined && known.limit === limit) return known
    const share = { accountId, start, limit, held: 0, left: limit, leased: 0, waiting: 0, leasing: undefined }
    shares.set(accountId, share)
    return share
  }

  async function lease(share: Share): Promise<void> {
    const { accountId, start, limit } = share
    const wanted = leaseSize(share)
    const { granted, left } = await leaseRequests(db, { accountId, start: new Date(start), wanted, limit })
    share.held += granted
    share.left = left
    share.leased = wanted
  }

  /** All who call while a lease is under way get that one. */
  function leaseOnce(share: Share): Promise<void> {
    share.leasing ??= lease(share).finally(() => {
      share.leasing = undefined
    })
    return share.leasing
  }

  /** Undefined when the database must be asked first. */
  function count(share: Share): RateLimitVerdict | undefined {
    const { limit, start, held, left } = share
    if (held === 0 && left > 0) return undefined
    if (held > 0) share.held -= 1
    // Should it fail, the first request that needs it asks again, and is told.
    if (isRunningLow(share)) leaseOnce(share).catch(() => undefined)
    return { allowed: held > 0, limit, remaining: share.held + left, resetAt: start + windowMs }
  }

  async function countLeased(account: Account): Promise<RateLimitVerdict> {
    for (;;) {
      const share = shareOf(account)
      const verdict = count(share)
      if (verdict !== undefined) return verdict
      share.waiting += 1
      try {
        await leaseOnce(share)
      } finally {
        share.waiting -= 1
      }
    }
  }

  return { take: (account) => count(shareOf(account)) ?? countLeased(account) }
}

function isRunningLow({ held, left, leased }: Share): boolean {
  return left > 0 && leased >= aheadFrom && held <= leased / 2
}

/** How many requests to lease: enough for those that wait, and more the faster they are used, within bounds. */
export function leaseSize({ waiting, leased, left }: Pick<Share, 'waiting' | 'leased' | 'left'>): number {
  return Math.max(1, waiting, Math.min(2 * leased, Math.floor(left / leaseShare), maxLease))
}

/**
 * Has every answer behind it tell the limit, and refuses with `rate_limit_exceeded` what is beyond it.
 * To stand behind `authenticate`.
 */
export function limitRate({ limiter, clock }: { limiter: RateLimiter; clock: Clock }): RouteGate {
  function admit({ allowed, limit, remaining, resetAt }: RateLimitVerdict, res: Response): void {
    res.setHeader('X-RateLimit-Limit', limit)
    res.setHeader('X-RateLimit-Remaining', remaining)
    res.setHeader('X-RateLimit-Reset', resetAt / 1000)
    if (allowed) return
    const retryAfterSeconds = Math.max(1, Math.ceil((resetAt - clock.now().getTime()) / 1000))
    throw new DomainError('rate_limit_exceeded', refusal(limit, retryAfterSeconds), { retryAfterSeconds })
  }

  return (req, res, next) => {
    const verdict = limiter.take(callerOf(req))
    if (verdict instanceof Promise) {
      return verdict.then((late) => {
        admit(late, res)
        next()
      })
    }
    admit(verdict, res)
    next()
    return undefined
  }
}

function refusal(limit: number, retryAfterSeconds: number): string {
  const spent = `The account has sent the ${limit} requests that its plan allows in ${windowMs / 1000} seconds.`
  return `${spent} Try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? 'second' : 'seconds'}.`
}
