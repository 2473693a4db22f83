import { isGranted } from '../../contract/permissions.ts'
import type { RouteMetadata } from '../../contract/route.ts'
import { isWithin } from '../api-keys/address-ranges.ts'
import type { KeyCache } from '../api-keys/cache.ts'
import { hasKeyShape, keyPrefix, secretLength } from '../api-keys/key-format.ts'
import type { LastUses } from '../api-keys/last-used.ts'
import type { ApiKeyService, AuthenticatedKey, FoundKey } from '../api-keys/service.ts'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import type { AuthFailures } from './auth-failures.ts'
import { type Caller, callerOf, setCaller, setRefusedCaller, signedInOf } from './caller.ts'
import { clientAddressOf } from './client-address.ts'
import type { RouteGate, RouteRequest } from './route-handler.ts'

export type AuthenticateOptions = {
  db: Db
  apiKeys: Pick<ApiKeyService, 'findBySecret'>
  cache: KeyCache
  failures: AuthFailures
  clock: Clock
  /** Notes when and from where keys are used. */
  lastUses: Pick<LastUses, 'saw'>
}

/**
 * Returns the gate that authenticates the caller and stores it for `callerOf`. Gates run in this order: this one, the
 * rate limit, `requirePermission`. Routes that take sessions too have `identify` before it.
 *
 * Throws `authentication_error` when the key is missing, malformed, unknown, revoked or expired, when it must not be used
 * from the client's address, or when there are two headers. Throws `rate_limit_exceeded` instead when the client's
 * address has failed too often. A valid key is always accepted: many clients may share an address, for example behind a
 * proxy, and one must not lock out the others.
 */
export function authenticate(options: AuthenticateOptions): RouteGate {
  const { db, apiKeys, cache, failures, clock, lastUses } = options

  async function find(req: RouteRequest, address: string): Promise<AuthenticatedKey> {
    const headers = req.headersDistinct.authorization ?? []
    const secret = headers[0] === undefined ? null : bearerTokenOf(headers[0])
    const cached = secret === null || headers.length > 1 ? undefined : cache.get(secret)
    const result = cached ?? (await checkKey(headers, (key) => cache.read(key, () => apiKeys.findBySecret(db, key))))
    // Looked at in each request: a cached key too stops at its time.
    const fault = typeof result === 'string' ? result : faultOfUse(result, { address, now: clock.now() })
    if (typeof result !== 'string') {
      if (fault === null) return result
      setRefusedCaller(req, result)
    }
    refuseAfter(failures.count(address))
    throw new DomainError('authentication_error', fault ?? '')
  }

  return async (req, _res, next) => {
    // `req.ip` is undefined when the client has already disconnected.
    const address = req.ip ?? ''
    const key = await find(req, address)
    lastUses.saw(key, address)
    setCaller(req, key)
    next()
  }
}

/**
 * Refuses requests that the caller has no permission for. Routes about no account need none; those for operators need
 * the session of one.
 */
export const requirePermission: RouteGate = (req, _res, next) => {
  const { metadata } = req.tsRestRoute
  if (metadata.caller === 'operator' && signedInOf(req)?.isOperator !== true) throw operatorNeeded()
  if (metadata.permission !== null) authorize(callerOf(req), metadata)
  next()
}

function operatorNeeded(): DomainError {
  return new DomainError(
    'authentication_error',
    'This operation is for operators of the service: the command line marks a user as one, with "users operator".',
  )
}

/** Throws `authentication_error` when the route needs live mode or a permission that the caller does not have. */
export function authorize(
  { mode, permissions, actor }: Pick<Caller, 'mode' | 'permissions'> & { actor?: Pick<Caller['actor'], 'type'> },
  { permission, liveKeyOnly }: Pick<RouteMetadata, 'permission' | 'liveKeyOnly'>,
): void {
  const isUser = actor?.type === 'user'
  if (actor?.type === 'portal_session' && permission !== null && !isGranted(permissions, permission)) {
    throw new DomainError(
      'authentication_error',
      `The portal session lacks the permission "${permission}": ask the support of the site that shows this page.`,
    )
  }
  if (liveKeyOnly && mode !== 'live') {
    throw new DomainError(
      'authentication_error',
      isUser
        ? 'This operation needs live mode: switch from test to live.'
        : `This operation needs a live key, and the request carries a test key: use one that begins with "${keyPrefix('live')}".`,
    )
  }
  if (permission !== null && !isGranted(permissions, permission)) {
    throw new DomainError(
      'authentication_error',
      isUser
        ? `Your role lacks the permission "${permission}": ask an owner or admin of the account.`
        : `The API key lacks the permission "${permission}": use a key that has it, or create one.`,
    )
  }
}

/** Returns the key of a request, which may be revoked, or the message that says why there is none. */
async function checkKey(
  [header, ...others]: readonly string[],
  lookUp: (key: string) => Promise<FoundKey | null>,
): Promise<FoundKey | string> {
  // Node would use the first header, and a proxy in front of it perhaps the last (RFC 9110 §11.6.2: one value).
  if (others.length > 0) return 'The request has more than one Authorization header: send one.'
  if (header === undefined) return 'The API key is missing: send it as "Authorization: Bearer <API key>".'
  const secret = bearerTokenOf(header)
  if (secret === null) return 'The Authorization header is malformed: it must be "Authorization: Bearer <API key>".'
  if (!hasKeyShape(secret)) {
    return `The API key is malformed: a key is "${keyPrefix('test')}" or "${keyPrefix('live')}" and ${secretLength} letters and digits; copy the whole of it.`
  }
  const found = await lookUp(secret)
  return found ?? 'The API key is not known: it is mistyped, or was deleted. Use another key.'
}

/** Returns the reason why a key must not be used now or from this address, or null. */
function faultOfUse(
  key: AuthenticatedKey & Partial<Pick<FoundKey, 'isRevoked'>>,
  { address, now }: { address: string; now: Date },
): string | null {
  // The holder of the key may learn that it was revoked.
  if (key.isRevoked === true) return 'The API key was revoked: use another key.'
  const { expiresAt } = key.limits
  if (expiresAt !== null && expiresAt <= now) {
    return `The API key expired at ${expiresAt.toISOString()}: use another key.`
  }
  if (key.allowedRanges.length === 0) return null
  const client = clientAddressOf(address)
  if (client !== null && isWithin(key.allowedRanges, client)) return null
  return `The API key must not be used from this address (${client ?? 'unknown'}): use it from one it allows, or another key.`
}

/**
 * Returns the token of an `Authorization` header, or null when the header has another scheme or form.
 *
 * Source: RFC 6750 §2.1 (the token), RFC 9110 §11.1 (the scheme in any letter case).
 */
function bearerTokenOf(header: string): string | null {
  return /^Bearer +([\w.~+/-]+=*) *$/i.exec(header)?.[1] ?? null
}

/** Throws `rate_limit_exceeded` when an address that failed to authenticate must wait. */
export function refuseAfter(waitMs: number): void {
  if (waitMs === 0) return
  throw new DomainError(
    'rate_limit_exceeded',
    'Too many requests from this address failed to authenticate: correct the API key, then try again.',
    { retryAfterSeconds: Math.ceil(waitMs / 1000) },
  )
}
