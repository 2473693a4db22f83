import { idPattern } from '../../contract/ids.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import { rolePermissions } from '../../contract/roles.ts'
import type { Db } from '../database/connection.ts'
import { DomainError, invalidField } from '../shared/errors.ts'
import type { SessionService, SignedIn } from '../users/sessions.ts'
import type { AuthFailures } from './auth-failures.ts'
import { refuseAfter } from './authenticate.ts'
import { type Caller, setCaller, setSignedIn, signedInOf } from './caller.ts'
import { clientAddressOf } from './client-address.ts'
import type { OwnPagesCheck } from './own-pages.ts'
import type { RouteGate, RouteRequest } from './route-handler.ts'
import type { Cookie } from './session-cookie.ts'

const accountHeader = 'x-postern-account'
const modeHeader = 'x-postern-mode'

export type IdentifyOptions = {
  db: Db
  /** Authenticates a request by its key. */
  byKey: RouteGate
  sessions: Pick<SessionService, 'find'>
  cookie: Cookie
  assertOwnPage: OwnPagesCheck
  failures: AuthFailures
}

/**
 * Returns the gate that finds who sends a request: by its key, or by the cookie of a session. A request with an
 * `Authorization` header is judged by that alone. Gates run in this order: this one, the rate limit, `selectAccount`,
 * `requirePermission`.
 *
 * Throws as `authenticate` does for keys. For sessions, throws `authentication_error` when there is none or it has
 * ended, and `forbidden_origin` when the request comes from a page of others.
 */
export function identify({ db, byKey, sessions, cookie, assertOwnPage, failures }: IdentifyOptions): RouteGate {
  async function bySession(req: RouteRequest, token: string | null): Promise<SignedIn> {
    assertOwnPage(req)
    const found =
      token === null
        ? null
        : await sessions.find(db, { token, accountId: accountOf(req), ipAddress: clientAddressOf(req.ip) ?? '' })
    if (found !== null) return found
    refuseAfter(failures.count(req.ip ?? ''))
    throw new DomainError(
      'authentication_error',
      token === null ? 'There is no session: sign in to the dashboard.' : 'The session has ended: sign in again.',
    )
  }

  return async (req, res, next) => {
    const { caller } = req.tsRestRoute.metadata
    if (caller === 'none') {
      assertOwnPage(req)
      next()
      return
    }
    const hasKey = req.headersDistinct.authorization !== undefined
    if (caller === 'session' && hasKey) {
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

/** Returns the account that the request names, or null when it names none that could be there. */
function accountOf(req: RouteRequest): string | null {
  const given = req.headersDistinct[accountHeader]?.join() ?? ''
  return idPattern('account').test(given) ? given : null
}

/**
 * Makes the user of a session the caller in the account that the request names, where the route is about one. Must run
 * after the rate limit, which counts the request for the user.
 *
 * Throws `validation_error` when a header is missing or malformed, and `not_found` when the user is no member.
 */
export const selectAccount: RouteGate = (req, _res, next) => {
  const signedIn = signedInOf(req)
  if (signedIn !== undefined && req.tsRestRoute.metadata.permission !== null)
    setCaller(req, callerOfUser(req, signedIn))
  next()
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
