import type { Request, RequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { knownCallerOf, portalCustomerOf, signedInOf } from './caller.ts'
import { isComplete } from './open-ended.ts'
import type { RecordRequest } from './record-requests.ts'
import { requestIdOf } from './request-id.ts'
import type { RequestMetrics } from './request-metrics.ts'

/** Paths that machines request every few seconds. Logged at level `debug`, and not traced. */
export const quietRoutes: readonly string[] = ['/healthz', '/readyz', '/metrics']

/**
 * Logs and counts every request when its response has ended or the client has disconnected. Does not log the raw path,
 * the query, headers or bodies.
 *
 * @param record Notes requests in the request logs too. Undefined: they are switched off.
 */
export function logRequests(logger: Logger, metrics: RequestMetrics, record?: RecordRequest): RequestHandler {
  return (req, res, next) => {
    const startedAt = performance.now()
    res.once('close', () => {
      const durationMs = performance.now() - startedAt
      const route = routeOf(req)
      const status = isComplete(res) ? res.statusCode : 'aborted'
      metrics.onAnswered({ method: req.method, route, status, durationMs })
      const level = quietRoutes.includes(route) ? 'debug' : 'info'
      if (logger.isLevelEnabled(level)) logger[level](fieldsOf(req, res, { route, status, durationMs }), 'request')
      record?.(req, res, { status, durationMs })
    })
    next()
  }
}

type Measured = { route: string; status: number | 'aborted'; durationMs: number }

function fieldsOf(req: Request, res: Response, { route, status, durationMs }: Measured) {
  const caller = knownCallerOf(req)
  return {
    requestId: requestIdOf(res),
    method: req.method,
    route,
    status,
    durationMs: Math.round(durationMs * 10) / 10,
    accountId: caller?.accountId,
    ...(caller?.actor.type === 'key' && { keyId: caller.actor.id }),
    ...userOf(req),
    remoteAddress: req.ip,
  }
}

function userOf(req: Request): { userId?: string; portalSessionId?: string } {
  const signedIn = signedInOf(req)
  const portal = portalCustomerOf(req)
  if (portal !== undefined) return { portalSessionId: portal.sessionId }
  return signedIn === undefined ? {} : { userId: signedIn.userId }
}

/** Returns the path of the route in the contract, or `unmatched`, so that the number of different values is bounded. */
export function routeOf(req: Request): string {
  const path: unknown = req.route?.path
  return typeof path === 'string' ? path : 'unmatched'
}
