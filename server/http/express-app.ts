import { createExpressEndpoints } from '@ts-rest/express'
import express, { type Express, type RequestHandler } from 'express'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { contract } from '../../contract/index.ts'
import type { WebPages } from '../campaigns/web-pages.ts'
import type { Confirmations } from '../confirmations/confirm.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { noTracer, type Tracer } from '../observability/tracing/tracer.ts'
import type { RequestLogRecorder } from '../request-logs/recorder.ts'
import { DomainError } from '../shared/errors.ts'
import type { MailLinks } from '../tracking/tracking.ts'
import { logRequests } from './access-log.ts'
import { type LargeBodies, readJsonBody } from './body.ts'
import { serveConfirmationLinks } from './confirmation-links.ts'
import { serveDashboard } from './dashboard/serve.ts'
import { serveDocs } from './docs.ts'
import { answerErrors, badEscape } from './errors.ts'
import { answerHealth, answerMetrics, answerReadiness, type Checks } from './health.ts'
import { serveMailLinks } from './mail-links.ts'
import { pathsOf, refuseOtherMethods } from './methods.ts'
import { checkQuery, parseQuery } from './query.ts'
import { createRequestRecorder } from './record-requests.ts'
import { assignRequestId } from './request-id.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { createResourceRouter } from './resource-router.ts'
import type { RouteGate } from './route-handler.ts'
import { createRoutes, type RouteWrappers, type Services } from './routes/index.ts'
import { writeJson } from './streamed-json.ts'
import { traceRequests } from './trace-requests.ts'
import { warnOfUntrustedProxy } from './untrusted-proxy.ts'
import { refusalOf, validatedAtOnce } from './validation.ts'
import { serveWebPages } from './web-pages.ts'

/** Options of the API, which a process that only works does not serve. */
export type ApiOptions = {
  services: Services
  wrappers: RouteWrappers
  /** Run in this order before the body is read: authentication, rate limit, permission. */
  gates: readonly RouteGate[]
  /** Run in this order once the body of a request is read, if it has one. */
  gatesOfBodies: readonly RouteGate[]
  /** Where requests of keys are noted. Null: they are not. */
  requestLogs: Pick<RequestLogRecorder, 'add'> | null
  /** Makes the OpenAPI document to publish. Called when it is first asked for. */
  document: () => Promise<object>
  /** True when email is captured instead of sent. The dashboard then shows what was. */
  capturing: boolean
  /** Resolves when the dashboard is built, or cannot be. Default: nothing builds it now. */
  dashboardBuilt?: Promise<unknown> | undefined
  /** Largest request body. */
  maxBodyBytes: number
  /** Largest request body of routes that take attachments. */
  maxEmailBodyBytes: number
  /** Origins of the pages that may show the portal in a frame. */
  portalOrigins: readonly string[]
}

export type HttpAppOptions = {
  /** Null in a process that only works: it serves health checks, metrics and, if set, `mailLinks`. */
  api: ApiOptions | null
  /** Served at `/metrics`. The metrics of requests are added to it. */
  registry: Registry
  /** Run by `/readyz`. */
  checks: Checks
  logger: Logger
  /** Number of proxies in front of the service whose `X-Forwarded-*` headers are trusted. */
  trustProxy: number
  /** Handles the links in emails. Default: these paths do not exist. */
  mailLinks?: MailLinks
  /** Handles the links that confirm a subscription. Default: these paths do not exist. */
  confirmations?: Confirmations
  /** Returns the messages of campaigns as pages. Default: these paths do not exist. */
  webPages?: WebPages
  /** Default: requests are not traced. */
  tracer?: Tracer
}

/** Creates the HTTP interface: the routes of the contract, and the paths that need no key. */
export function createHttpApp(options: HttpAppOptions): Express {
  const { logger, registry, tracer = noTracer } = options
  const app = express()
  // Before the first route, because Express reads these settings when it creates its router.
  app.enable('case sensitive routing').enable('strict routing').disable('x-powered-by').disable('etag')
  // Nested objects only where the contract has them, so that repeated parameters can be detected.
  app.set('query parser', parseQuery)
  app.set('trust proxy', options.trustProxy)

  const requestLogs = options.api?.requestLogs ?? null
  const record = requestLogs === null ? undefined : createRequestRecorder(requestLogs)
  app.use(
    begin,
    logRequests(logger, createRequestMetrics(registry), record),
    traceRequests(tracer),
    warnOfUntrustedProxy(logger, options.trustProxy),
    requireHost,
    writeJson,
  )
  const pagePaths = options.api === null ? [] : serveApi(app, options.api)
  if (options.mailLinks !== undefined) serveMailLinks(app, options.mailLinks)
  if (options.confirmations !== undefined) serveConfirmationLinks(app, options.confirmations)
  if (options.webPages !== undefined) serveWebPages(app, options.webPages)
  app.get('/healthz', answerHealth)
  app.get('/readyz', answerReadiness(options.checks))
  app.get('/metrics', answerMetrics(registry))
  const openPaths = ['/healthz', '/readyz', '/metrics', ...pagePaths]
  for (const path of openPaths) refuseOtherMethods(app, path, ['GET'])
  app.use(refuseUnknownPath)
  app.use(answerErrors(logger))
  return app
}

/** Adds the routes of the contract and the pages. Returns the paths of the pages. */
function serveApi(app: Express, options: ApiOptions): string[] {
  const { services, wrappers, gates, gatesOfBodies, document } = options
  const { maxBodyBytes, maxEmailBodyBytes } = options
  const router = createResourceRouter()
  // Before the routes that end with a parameter: `/v1/emails/batch` also matches `/v1/emails/:id`, but has other methods.
  for (const [path, methods] of pathsOf(contract))
    if (!endsWithParameter(path)) refuseOtherMethods(router, path, methods)
  createExpressEndpoints(validatedAtOnce(contract), createRoutes(services, wrappers), router, {
    logInitialization: false,
    globalMiddleware: [
      ...gates,
      checkQuery,
      readJsonBody(maxBodyBytes, largeBodies(maxEmailBodyBytes)),
      ...gatesOfBodies.map(whereThereIsABody),
    ],
    requestValidationErrorHandler: (error, req, _res, next) => next(refusalOf(error, req.tsRestRoute)),
  })
  for (const [path, methods] of pathsOf(contract))
    if (endsWithParameter(path)) refuseOtherMethods(router, path, methods)
  app.use(router)
  return [...serveDocs(app, document), ...serveDashboard(app, options)]
}

function endsWithParameter(path: string): boolean {
  return path.split('/').at(-1)?.startsWith(':') === true
}

function whereThereIsABody(gate: RouteGate): RouteGate {
  return (req, res, next) => (req.body === undefined ? next() : gate(req, res, next))
}

/** Limits large bodies: two of the largest at once, or more smaller ones. */
function largeBodies(maxBytes: number): LargeBodies {
  return { maxBytes, memory: createSemaphore(2 * maxBytes) }
}

const begin: RequestHandler = (_req, res, next) => {
  assignRequestId(res)
  res.setHeader('X-Content-Type-Options', 'nosniff')
  // Responses hold data of one account, so no cache may store them.
  res.setHeader('Cache-Control', 'no-store')
  next()
}

/**
 * Refuses requests with no Host header or more than one. Node would respond without a body to the former, and use the
 * first header of the latter. Source: RFC 9112 §3.2.
 */
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
  const usual = 'Nothing is at this path: see /docs for those there are.'
  throw new DomainError('not_found', [usual, ...commonSlips(req.path)].join(' '))
}

/** Returns what often makes a path unknown. */
function commonSlips(path: string): string[] {
  if (!path.startsWith('/v1/')) return ['Those of the API begin with "/v1/".']
  return path.endsWith('/') ? ['None of them ends with a slash.'] : []
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
