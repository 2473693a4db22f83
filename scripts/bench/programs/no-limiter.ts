import type { RouteGate } from '../../../server/http/endpoint.ts'
import type { RateLimiter } from '../../../server/http/rate-limit.ts'

/* What stands in the place of the rate limiter when there shall be none. */

export function createRateLimiter(): Pick<RateLimiter, never> {
  return {}
}

export function limitRate(): RouteGate {
  return (_req, _res, next) => next()
}
