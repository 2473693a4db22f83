import type { RequestHandler } from 'express'
import type { Logger } from 'pino'

/**
 * Returns a handler that warns once when a request seems to come from a proxy while none is trusted: everybody behind it
 * counts as one client then. `trusted`: how many are.
 */
export function warnOfUntrustedProxy(logger: Pick<Logger, 'warn'>, trusted: number): RequestHandler {
  let mayWarn = trusted === 0
  return (req, _res, next) => {
    if (mayWarn && req.headers['x-forwarded-for'] !== undefined) {
      mayWarn = false
      logger.warn(
        'a request has X-Forwarded-For, but TRUST_PROXY is 0. If a proxy stands in front, everybody behind it counts as one client, and failed sign-ins of one person delay others: set TRUST_PROXY to the number of proxies. If none does, a client sent the header: leave it at 0.',
      )
    }
    next()
  }
}
