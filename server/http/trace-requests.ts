import type { ServerResponse } from 'node:http'
import type { RequestHandler } from 'express'
import { noTracer, type Tracer, unrecorded } from '../observability/tracing/tracer.ts'
import { quietRoutes, routeOf } from './access-log.ts'
import { isComplete } from './open-ended.ts'
import { requestIdOf } from './request-id.ts'

/**
 * Records a span for every request until its response has ended or the client has disconnected. The span belongs to the
 * trace of the `traceparent` header, or to a new one when the header is missing, malformed or repeated. Does not record
 * the raw path, the query, other headers or bodies.
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

/**
 * Returns the error of a span, or null. Only status 5xx and aborted responses are errors.
 *
 * Source: OpenTelemetry semantic conventions, "HTTP spans", status.
 */
function errorOf(res: ServerResponse): string | null {
  if (!isComplete(res)) return 'aborted'
  return res.statusCode >= 500 ? String(res.statusCode) : null
}
