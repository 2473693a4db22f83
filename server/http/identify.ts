import { idPattern } from '../../contract/ids.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import { portalTokenPrefix } from '../../contract/portal-sessions.ts'
import { rolePermissions } from '../../contract/roles.ts'
import type { Db } from '../database/connection.ts'
import type { PortalCustomer, PortalSessionService } from '../portal-sessions/service.ts'
import { DomainError, invalidField } from '../shared/errors.ts'
import type { SessionService, SignedIn } from '../users/sessions.ts'
import type { AuthFailures } from './auth-failures.ts'
import { refuseAfter } from './authenticate.ts'
import { type Caller, portalCustomerOf, setCaller, setPortalCustomer, setSignedIn, signedInOf } from './caller.ts'
import { clientAddressOf } from './client-address.ts'
import type { OwnPagesCheck } from './own-pages.ts'
import type { PortalCookies } from './portal-cookies.ts'
import type { RouteGate, RouteRequest } from './route-handler.ts'
import type { Cookie } from './session-cookie.ts'

const accountHeader = 'x-postern-account'
const modeHeader = 'x-postern-mode'
const portalHeader = 'x-postern-portal'
const unattendedHeader = 'x-postern-unattended'

export type IdentifyOptions = {
  db: Db
  /** Authenticates a request by its key. */
  byKey: RouteGate
  sessions: Pick<SessionService, 'find'>
  cookie: Cookie
  portalSessions: Pick<PortalSessionService, 'find'>
  portalCookies: PortalCookies
  assertOwnPage: OwnPagesCheck
  failures: AuthFailures
}

/**
 * Returns the gate that finds who sends a request: by its key, by the cookie of a session, or by the token or cookie of
 * a portal session. A request with an `Authorization` header is judged by that alone. Gates run in this order: this one,
 * the rate limit, `selectAccount`, `requirePermission`.
 *
 * A request of a page that is not attended, and a stream of events for which this gate runs again, do not extend the
 * session.
 *
 * Throws as `authenticate` does for keys. For sessions, throws `authentication_error` when there is none or it has
 * ended, and `forbidden_origin` when the request comes from a page of others. Portal sessions are refused on every
 * route without `inPortal`.
 */
export function identify(options: IdentifyOptions): RouteGate {
  const { db, byKey, sessions, cookie, portalSessions, portalCookies, assertOwnPage, failures } = options

  async function bySession(req: RouteRequest, token: string | null): Promise<SignedIn> {
    assertOwnPage(req)
    const found =
      token === null
        ? null
        : await sessions.find(db, {
            token,
            accountId: accountOf(req),
            ipAddress: clientAddressOf(req.ip) ?? '',
            isUse: signedInOf(req) === undefined && !isUnattended(req),
          })
    if (found !== null) return found
    refuseAfter(failures.count(req.ip ?? ''))
    throw new DomainError(
      'authentication_error',
      token === null ? 'There is no session: sign in to the dashboard.' : 'The session has ended: sign in again.',
    )
  }

  async function byPortal(req: RouteRequest, { bearer, sessionId }: PortalCredential): Promise<PortalCustomer> {
    if (bearer === null) assertOwnPage(req)
    const token = bearer ?? portalCookies.read(req, sessionId)
    const isUse = portalCustomerOf(req) === undefined && !isUnattended(req)
    const found = token === null ? null : await portalSessions.find(db, { token, isUse })
    if (found === null || (bearer === null && found.sessionId !== sessionId)) {
      refuseAfter(failures.count(req.ip ?? ''))
      throw new DomainError('authentication_error', 'The portal session has ended: load the page that shows it again.')
    }
    if (req.tsRestRoute.metadata.inPortal) return found
    throw new DomainError('authentication_error', 'This operation is no part of the portal: it needs an API key.')
  }

  return async (req, res, next) => {
    const { caller } = req.tsRestRoute.metadata
    if (caller === 'none') {
      assertOwnPage(req)
      next()
      return
    }
    const portal = portalCredentialOf(req)
    if (portal !== null) {
      setPortalCustomer(req, await byPortal(req, portal))
      next()
      return
    }
    if (caller === 'portal') {
      refuseAfter(failures.count(req.ip ?? ''))
      throw new DomainError('authentication_error', 'This operation needs a session of the portal.')
    }
    const hasKey = req.headersDistinct.authorization !== undefined
    if ((caller === 'session' || caller === 'operator') && hasKey) {
      throw new DomainError(
        'authentication_error',
        'This operation is for people: it needs a session of the dashboard, and the request carries an API key.',
      )
    }
    const token = hasKey ? null : cookie.read(req)
    if (caller === 'key' || hasKey || (token === null && caller === 'any')) return byKey(req, res, next)
    setSignedIn(req, await bySession(req, token))
    next()
  }
}

/** How a request shows the portal session that it is of: by a token, or by a cookie and the id of the session. */
type PortalCredential = { bearer: string | null; sessionId: string }

/** Returns null for a request that is not of the portal. */
function portalCredentialOf({ headersDistinct }: RouteRequest): PortalCredential | null {
  const { authorization } = headersDistinct
  const sessionId = headersDistinct[portalHeader]?.join() ?? ''
  if (authorization === undefined)
    return headersDistinct[portalHeader] === undefined ? null : { bearer: null, sessionId }
  const bearer = authorization.length === 1 ? /^Bearer +(\S+) *$/i.exec(authorization[0] ?? '')?.[1] : undefined
  return bearer?.startsWith(portalTokenPrefix) ? { bearer, sessionId } : null
}

/**
 * Returns true for a request of a page that nobody uses, which only reads: what changes something is always a use, and
 * shows from where in the list of sessions.
 */
function isUnattended({ method, headersDistinct }: RouteRequest): boolean {
  return method === 'GET' && headersDistinct[unattendedHeader]?.join() === '1'
}

/** Returns the account that the request names, or null when it names none that could be there. */
function accountOf(req: RouteRequest): string | null {
  const given = req.headersDistinct[accountHeader]?.join() ?? ''
  return idPattern('account').test(given) ? given : null
}

/**
 * Makes the customer of a portal session the caller, or the user of a session in the account that the request names,
 * where the route is about one. Must run after the rate limit, which counts the request for the user or customer.
 *
 * Throws `validation_error` when a header is missing or malformed, and `not_found` when the user is no member.
 */
export const selectAccount: RouteGate = (req, _res, next) => {
  const portal = portalCustomerOf(req)
  if (portal !== undefined) setCaller(req, callerOfPortal(portal))
  const signedIn = signedInOf(req)
  if (signedIn !== undefined && req.tsRestRoute.metadata.permission !== null)
    setCaller(req, callerOfUser(req, signedIn))
  next()
}

function callerOfPortal(of: PortalCustomer): Caller {
  const { accountId, plan, mode, permissions, sessionId, customer, eventTypes } = of
  const actor = { type: 'portal_session', id: sessionId, name: customer } as const
  return { accountId, plan, mode, permissions, actor, limits: noLimits, portal: { customer, eventTypes } }
}

function callerOfUser(req: RouteRequest, { membership, userId, userName }: SignedIn): Caller {
  const account = req.headersDistinct[accountHeader]
  if (account?.length !== 1) {
    throw invalidField(`header.${accountHeader}`, 'must be given once: the id of the account the request is about')
  }
  const mode = modeOf(req)
  if (membership === null) {
    throw new DomainError('not_found', 'There is no such account, or you are no member of it: see GET /v1/session.')
  }
  const { accountId, plan, role } = membership
  const actor = { type: 'user', id: userId, name: userName } as const
  return { accountId, plan, mode, permissions: rolePermissions[role], actor, limits: noLimits }
}

/** A key that a user makes may last for ever and be used from everywhere. */
const noLimits = { expiresAt: null, allowedAddresses: [] }

function modeOf(req: RouteRequest): Mode {
  const given = req.headersDistinct[modeHeader] ?? ['live']
  const mode = modes.find((one) => one === given.join())
  if (mode === undefined) throw invalidField(`header.${modeHeader}`, 'must be given once at most: "test" or "live"')
  return mode
}
