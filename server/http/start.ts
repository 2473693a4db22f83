import type { KeyCache } from '../api-keys/cache.ts'
import type { LastUses } from '../api-keys/last-used.ts'
import type { ApiKeyService } from '../api-keys/service.ts'
import type { EventStreams } from '../events/streams.ts'
import { createAuthFailures } from './auth-failures.ts'
import { authenticate, requirePermission } from './authenticate.ts'
import { createFollowEvents } from './event-stream.ts'
import { type ApiOptions, createHttpApp, type HttpAppOptions } from './express-app.ts'
import type { EndpointOptions } from './idempotency.ts'
import { createEndpoint } from './idempotency.ts'
import { identify, selectAccount } from './identify.ts'
import { limitCallers } from './limit-callers.ts'
import { createOwnPagesCheck } from './own-pages.ts'
import { createPortalCookies } from './portal-cookies.ts'
import { createRateLimiter, limitRate } from './rate-limit.ts'
import { type HttpServer, listen } from './server.ts'
import { createCookies } from './session-cookie.ts'
import { createSessionEndpoints } from './session-endpoint.ts'

/** The settings of the HTTP interface. */
export type HttpConfig = Pick<ApiOptions, 'maxBodyBytes' | 'maxEmailBodyBytes'> & {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** URL of the service for clients, without a trailing slash. Null: the address it listens on. */
  readonly publicUrl: string | null
  /** Number of proxies in front of the service whose `X-Forwarded-*` headers are trusted. */
  readonly trustProxy: number
  /** Origins of the pages that may show the portal in a frame. May begin with `*.` in place of the first name. */
  readonly portalOrigins: readonly string[]
  /** Failed authentications allowed to one client address in a minute. */
  readonly authFailuresPerMinute: number
}

export type ApiMeans = Pick<ApiOptions, 'services' | 'document' | 'capturing' | 'dashboardBuilt' | 'requestLogs'> &
  EndpointOptions & {
    apiKeys: ApiKeyService
    keyCache: KeyCache
    lastUses: LastUses
    /** Requests per minute of each plan. */
    rateLimits: Readonly<Record<string, number>>
    eventStreams: EventStreams
    /** Milliseconds between heartbeats of streams. Default: see `createFollowEvents`. */
    heartbeatMs?: number | undefined
  }

/** Starts the HTTP server: health checks, metrics, the links in emails and, unless `api` is null, the API. */
export function startHttp(
  options: Omit<HttpAppOptions, 'api' | 'trustProxy'> & { config: HttpConfig; api: ApiMeans | null },
): Promise<HttpServer> {
  const { config, api, logger } = options
  const app = createHttpApp({
    ...options,
    api: api === null ? null : apiOf(api, config),
    trustProxy: config.trustProxy,
  })
  return listen({ app, host: config.host, port: config.port, logger })
}

function apiOf(means: ApiMeans, config: HttpConfig): ApiOptions {
  const {
    services,
    document,
    capturing,
    dashboardBuilt,
    requestLogs,
    db,
    clock,
    apiKeys,
    keyCache,
    lastUses,
    rateLimits,
    eventStreams,
    heartbeatMs,
  } = means
  const cookies = createCookies(config.publicUrl)
  const portalCookies = createPortalCookies(config.publicUrl)
  const failures = createAuthFailures({ clock, perMinute: config.authFailuresPerMinute })
  const identifyCaller = identify({
    db,
    byKey: authenticate({ db, apiKeys, cache: keyCache, failures, clock, lastUses }),
    sessions: services.users.sessions,
    cookie: cookies.session,
    portalSessions: services.portalSessions,
    portalCookies,
    assertOwnPage: createOwnPagesCheck(config.publicUrl),
    failures,
  })
  const limitCaller = limitCallers({
    byKey: limitRate({ limiter: createRateLimiter({ db, clock, limits: rateLimits }), clock }),
    clock,
  })
  // A client may take half a minute to send a body, and keep a stream for hours. What the caller may is looked at again
  // then: the key may be revoked, the session over, or the user no member any more.
  const gatesAgain = [identifyCaller, selectAccount, requirePermission]
  return {
    services,
    wrappers: {
      endpoint: createEndpoint(means),
      sessionEndpoints: createSessionEndpoints({ db, cookies, portalCookies }),
      follow: createFollowEvents({ streams: eventStreams, gates: gatesAgain, heartbeatMs }),
    },
    gates: [identifyCaller, limitCaller, selectAccount, requirePermission],
    gatesOfBodies: gatesAgain,
    capturing,
    dashboardBuilt,
    requestLogs,
    document,
    maxBodyBytes: config.maxBodyBytes,
    maxEmailBodyBytes: config.maxEmailBodyBytes,
    portalOrigins: config.portalOrigins,
  }
}
