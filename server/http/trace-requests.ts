import type { RequestHandler } from 'express'
import { noTracer, type Tracer, unrecorded } from '../observability/tracing/tracer.ts'
import { quietRoutes, routeOf } from './access-log.ts'
import { requestIdOf } from './request-id.ts'

/**
 * Records every request until its answer has ended or its client has left, in the trace its
 * `traceparent` names or in a new one. Neither the path as it was sent, nor a query, another header or
 * a body is recorded. A `traceparent` that is none, or given twice, is passed over.
 */
export function traceRequests(tracer: Tracer): RequestHandler {
  if (tracer === noTracer) return (_req, _res, next) => next()
  return (req, res, next) => {
    if (quietRoutes.includes(req.path)) {
      next()
      return
    }
    const span = tracer.start({
      name: req.method,
      kind: 'server',
      parent: parentOf(req.headersDistinct.traceparent),
      attributes: { 'http.request.method': req.method, 'url.scheme': req.protocol },
    })
    if (span === unrecorded) {
      next()
      return
    }
    res.once('close', () => {
      const route = routeOf(req)
      const error = errorOf(res)
      span.end({
        name: `${req.method} ${route}`,
        attributes: {
          'http.route': route,
          'http.response.status_code': res.statusCode,
          'postern.request.id': requestIdOf(res),
          ...(error !== null && { 'error.type': error }),
        },
        ...(error !== null && { error }),
      })
    })
    tracer.within(span, next)
  }
}

function parentOf(given: readonly string[] | undefined): string | null {
  return given?.length === 1 ? (given[0] ?? null) : null
}

/** Only what is ours to answer for is an error. Source: OpenTelemetry semantic conventions, "HTTP spans", status. */
function errorOf(res: { writableFinished: boolean; statusCode: number }): string | null {
  if (!res.writableFinished) return 'aborted'
  return res.statusCode >= 500 ? String(res.statusCode) : null
}
