import { createExpressEndpoints } from '@ts-rest/express'
import express, { type Express, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { contract } from '../../contract/index.ts'
import { noTracer, type Tracer } from '../observability/tracing/tracer.ts'
import { DomainError } from '../shared/errors.ts'
import type { MailLinks } from '../tracking/tracking.ts'
import { logRequests } from './access-log.ts'
import { type LargeBodies, readJsonBody } from './body.ts'
import { createByteSemaphore } from './body-admission.ts'
import { serveCaptured } from './captured/serve.ts'
import { serveDocs } from './docs.ts'
import type { Endpoint, RouteGate } from './endpoint.ts'
import { answerErrors, badEscape } from './errors.ts'
import { answerHealth, answerMetrics, answerReadiness, type Checks } from './health.ts'
import { serveMailLinks } from './mail-links.ts'
import { pathsOf, refuseOtherMethods } from './methods.ts'
import { checkQuery, parseQuery } from './query.ts'
import { assignRequestId } from './request-id.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { createRoutes, type Services } from './routes/index.ts'
import { streamLongTexts } from './streamed-json.ts'
import { traceRequests } from './trace-requests.ts'
import { refusalOf, validatedAtOnce } from './validation.ts'

/** What the API needs beyond what every process serves. */
export type ApiOptions = {
  services: Services
  /** Finds the caller of a route, and keeps the answers of idempotent ones. */
  endpoint: Endpoint
  /** Who may come in, in this order: authentication, the rate limit, the permission. Before anything is read. */
  gates: readonly RouteGate[]
  /** The OpenAPI document to publish. */
  document: object
  /** Whether email is captured instead of being sent: the page that shows it then says so. */
  capturing: boolean
  /** Of one request body. */
  maxBodyBytes: number
  /** Of one that may hold the files of emails. */
  maxEmailBodyBytes: number
}

export type HttpAppOptions = {
  /** Null in a process that only works: it serves nothing but what its operator asks. */
  api: ApiOptions | null
  /** Shown at `/metrics`; the figures of requests are added to it. */
  registry: Registry
  /** What `/readyz` asks. */
  checks: Checks
  logger: Logger
  /** How many proxies in front of the service are believed in what they say of the client's address. */
  trustProxy: number
  /** What the links in emails do. Default: they lead nowhere. */
  mailLinks?: MailLinks
  /** Default: no request is recorded. */
  tracer?: Tracer
}

/** The whole HTTP interface: the routes of the contract, and beside them what needs no key. */
export function createHttpApp(options: HttpAppOptions): Express {
  const { logger, registry, tracer = noTracer } = options
  const app = express()
  // Before the first route: express fixes them then.
  app.enable('case sensitive routing').enable('strict routing').disable('x-powered-by').disable('etag')
  // Nested objects only where the contract has them, and no arrays: what is given twice can then be seen.
  app.set('query parser', parseQuery)
  app.set('trust proxy', options.trustProxy)

  app.use(
    begin,
    logRequests(logger, createRequestMetrics(registry)),
    traceRequests(tracer),
    requireHost,
    streamLongTexts,
  )
  const pagePaths = options.api === null ? [] : serveApi(app, options.api)
  if (options.mailLinks !== undefined) serveMailLinks(app, options.mailLinks)
  app.get('/healthz', answerHealth)
  app.get('/readyz', answerReadiness(options.checks))
  app.get('/metrics', answerMetrics(registry))
  const openPaths = ['/healthz', '/readyz', '/metrics', ...pagePaths]
  for (const path of openPaths) refuseOtherMethods(app, path, ['GET'])
  app.use(refuseUnknownPath)
  app.use(answerErrors(logger))
  return app
}

/** The routes of the contract and the pages beside them. Answers the paths of the latter. */
function serveApi(app: Express, options: ApiOptions): string[] {
  const { services, endpoint, gates, document, maxBodyBytes, maxEmailBodyBytes, capturing } = options
  // `/v1/emails/batch` is of the form `/v1/emails/:id` too, but has none of its methods.
  for (const [path, methods] of pathsOf(contract)) if (!path.includes(':')) refuseOtherMethods(app, path, methods)
  createExpressEndpoints(validatedAtOnce(contract), createRoutes(services, endpoint), app, {
    logInitialization: false,
    globalMiddleware: [...gates, checkQuery, readJsonBody(maxBodyBytes, largeBodies(maxEmailBodyBytes))],
    requestValidationErrorHandler: (error, req, _res, next) => next(refusalOf(error, req.tsRestRoute)),
  })
  for (const [path, methods] of pathsOf(contract)) if (path.includes(':')) refuseOtherMethods(app, path, methods)
  return [...serveDocs(app, document), ...serveCaptured(app, { capturing })]
}

/** Two of the largest at once, or many smaller ones. */
function largeBodies(maxBytes: number): LargeBodies {
  return { maxBytes, memory: createByteSemaphore(2 * maxBytes) }
}

const begin: RequestHandler = (_req, res, next) => {
  assignRequestId(res)
  res.setHeader('X-Content-Type-Options', 'nosniff')
  // What an account sees is for it alone.
  res.setHeader('Cache-Control', 'no-store')
  next()
}

/** Node would answer without a body, and take the first of two. Source: RFC 9112 §3.2. */
const requireHost: RequestHandler = (req, _res, next) => {
  const hosts = req.headersDistinct.host?.length ?? 0
  if (hosts > 1) throw new DomainError('malformed_request', 'The request has more than one Host header: send one.')
  if (hosts === 0 && req.httpVersion === '1.1') {
    throw new DomainError('malformed_request', 'The request has no Host header: send one.')
  }
  next()
}

const refuseUnknownPath: RequestHandler = (req) => {
  if (!isDecodable(req.path)) throw badEscape()
  throw new DomainError('not_found', 'Nothing is at this path: see /docs for those there are.')
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
