import type { Response } from 'express'
import { limitOfPlan, type RateLimits } from '../accounts/plans.ts'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { callerOf } from './caller.ts'
import { leaseRequests, windowMs } from './rate-limit-windows.ts'
import type { RouteGate } from './route-handler.ts'

/** Most requests leased ahead by one statement. */
const maxLease = 1_024
/** A lease ahead takes at most 1/16 of the remaining requests, so that most stay available to other processes. */
const leaseShare = 16
/** Size from which the next lease is taken ahead, so that no request waits for it. */
const aheadFrom = 16

export type RateLimitVerdict = {
  allowed: boolean
  /** Requests the account may send in the window. */
  limit: number
  /** Requests left in the window as far as this process knows. Other processes may have used some of them. */
  remaining: number
  /** End of the window. Milliseconds since 1970. */
  resetAt: number
}

type Account = { accountId: string; plan: string }

export type RateLimiter = {
  /** Counts or refuses one request of the account. Returns a promise only when it must ask the database. */
  take(account: Account): RateLimitVerdict | Promise<RateLimitVerdict>
}

export type RateLimiterOptions = {
  db: Db
  clock: Clock
  /** Requests a minute, by plan. */
  limits: RateLimits
}

/** The leased requests of one account in one window, in this process. */
type Share = {
  accountId: string
  /** Start of the window. Milliseconds since 1970. */
  start: number
  limit: number
  /** Requests leased and not used yet. */
  held: number
  /** Requests left for all processes, without the held ones. */
  left: number
  /** Size of the last lease. */
  leased: number
  /** Requests that wait for a lease. */
  waiting: number
  leasing: Promise<void> | undefined
}

/**
 * Creates a limiter of the requests of each account in fixed windows of one minute. The limit holds for all processes
 * together and is never exceeded. Processes lease requests from the database: few at first and near the limit, more
 * when they are used fast. A process with large leases takes the next one when half of the last is used. Leased
 * requests that are not used are lost at the end of the window. An account whose plan is not in `limits` gets the
 * smallest limit.
 */
export function createRateLimiter({ db, clock, limits }: RateLimiterOptions): RateLimiter {
  let currentStart = 0
  let shares = new Map<string, Share>()

  function shareOf({ accountId, plan }: Account): Share {
    const limit = limitOfPlan(limits, plan)
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

  /** Takes a lease, or joins the one under way. */
  function leaseOnce(share: Share): Promise<void> {
    share.leasing ??= lease(share).finally(() => {
      share.leasing = undefined
    })
    return share.leasing
  }

  /** Counts one request of the share. Returns undefined when the database must be asked first. */
  function count(share: Share): RateLimitVerdict | undefined {
    const { limit, start, held, left } = share
    if (held === 0 && left > 0) return undefined
    if (held > 0) share.held -= 1
    // On failure, the first request without a lease asks again and gets the error.
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

/** Returns how many requests to lease: enough for the waiting ones, and up to twice the last lease, within bounds. */
export function leaseSize({ waiting, leased, left }: Pick<Share, 'waiting' | 'leased' | 'left'>): number {
  return Math.max(1, waiting, Math.min(2 * leased, Math.floor(left / leaseShare), maxLease))
}

/**
 * Returns the gate that adds the `X-RateLimit-*` headers to responses, and throws `rate_limit_exceeded` above the
 * limit. Must run after `authenticate`.
 */
export function limitRate({ limiter, clock }: { limiter: RateLimiter; clock: Clock }): RouteGate {
  function admit(verdict: RateLimitVerdict, res: Response): void {
    tellLimit(res, verdict, { clock, spent: spentBy(verdict) })
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

function spentBy({ limit }: RateLimitVerdict): string {
  return `The account has sent the ${limit} requests that its plan allows in ${windowMs / 1000} seconds.`
}

/**
 * Adds the `X-RateLimit-*` headers to a response. Throws `rate_limit_exceeded` when the request is beyond the limit.
 *
 * @param spent The start of the message: who has sent too much.
 */
export function tellLimit(
  res: Response,
  { allowed, limit, remaining, resetAt }: RateLimitVerdict,
  { clock, spent }: { clock: Clock; spent: string },
): void {
  res.setHeader('X-RateLimit-Limit', limit)
  res.setHeader('X-RateLimit-Remaining', remaining)
  res.setHeader('X-RateLimit-Reset', resetAt / 1000)
  if (allowed) return
  const retryAfterSeconds = Math.max(1, Math.ceil((resetAt - clock.now().getTime()) / 1000))
  const unit = retryAfterSeconds === 1 ? 'second' : 'seconds'
  throw new DomainError('rate_limit_exceeded', `${spent} Try again in ${retryAfterSeconds} ${unit}.`, {
    retryAfterSeconds,
  })
}
