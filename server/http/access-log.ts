import type { Request, RequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { knownCallerOf } from './caller.ts'
import { requestIdOf } from './request-id.ts'
import type { RequestMetrics } from './request-metrics.ts'

/** Asked every few seconds by machines: told only to those who want to know everything. */
export const quietRoutes: readonly string[] = ['/healthz', '/readyz', '/metrics']

/**
 * Logs and counts every request when its answer has ended, or its client has left. Neither the path as
 * it was sent, nor a query, a header or a body is logged.
 */
export function logRequests(logger: Logger, metrics: RequestMetrics): RequestHandler {
  return (req, res, next) => {
    const startedAt = performance.now()
    res.once('close', () => {
      const durationMs = performance.now() - startedAt
      const route = routeOf(req)
      const status = res.writableFinished ? res.statusCode : 'aborted'
      metrics.onAnswered({ method: req.method, route, status, durationMs })
      const level = quietRoutes.includes(route) ? 'debug' : 'info'
      if (logger.isLevelEnabled(level)) logger[level](fieldsOf(req, res, { route, status, durationMs }), 'request')
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
    keyId: caller?.keyId,
    remoteAddress: req.ip,
  }
}

/** The path of the route as the contract has it, so that the number of different ones is known. */
export function routeOf(req: Request): string {
  const path: unknown = req.route?.path
  return typeof path === 'string' ? path : 'unmatched'
}
