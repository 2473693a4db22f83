import { timingSafeEqual } from 'node:crypto'
import { type EventTypeName, isEventTypeName } from '../../contract/event-types.ts'
import type { Page } from '../../contract/pagination.ts'
import { grants, isGranted, type Permission } from '../../contract/permissions.ts'
import {
  type ColorScheme,
  type CreatePortalSession,
  maxPortalSessions,
  type OpenedPortalSession,
  type PortalAccess,
  type PortalSession,
  type PortalSessionListQuery,
  type PortalSessionWithUrl,
  portalLinkMinutes,
  portalPermissions,
  portalSessionHours,
  portalTokenPrefix,
} from '../../contract/portal-sessions.ts'
import { rolePermissions, roles } from '../../contract/roles.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Db, type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { hashOfToken, hasTokenShape, newToken } from '../users/tokens.ts'
import {
  deleteOldestSessions,
  deleteSession,
  type FoundSessionRow,
  findSessionByHash,
  insertSession,
  type MayMake,
  type PortalSessionRow,
  selectSessions,
  takeCode,
  touchSession,
} from './queries.ts'

const hourMs = 3_600_000
const linkMs = portalLinkMinutes * 60_000
const idleMs = portalSessionHours.idle * hourMs
const maxMs = portalSessionHours.max * hourMs
/** A maker needs both to make a session, and for as long as it lasts. */
const makerPermissions = ['webhooks:read', 'webhooks:write'] as const satisfies Permission[]
const mayMake: MayMake = {
  roles: roles.filter((role) => makerPermissions.every((permission) => isGranted(rolePermissions[role], permission))),
  grants: makerPermissions.map((permission) => grants.filter((grant) => isGranted([grant], permission))),
}
/** The time of the last use is written at most this often. */
const touchMs = 60_000

/** A customer whose request carries the token of a portal session. */
export type PortalCustomer = {
  sessionId: string
  accountId: string
  plan: string
  mode: Scope['mode']
  customer: string
  /** The event types that the customer may choose. Null: all. */
  eventTypes: readonly EventTypeName[] | null
  /** The permissions of the session: no more than its maker has at present. */
  permissions: readonly Permission[]
  access: PortalAccess
}

/** Sessions of the portal, in which a customer of an account sees their own webhooks. Throws DomainErrors. */
export type PortalSessionService = {
  /**
   * Ends the oldest sessions of the customer and of the account beyond `maxPortalSessions`. Throws
   * `authentication_error` when the maker may not read webhooks.
   */
  create(
    handle: Handle,
    scope: AuthoredScope,
    given: CreatePortalSession & {
      /** The permissions of the maker. */
      permissions: readonly string[]
    },
  ): Promise<PortalSessionWithUrl>
  /** Newest first, without those that have ended, by their time or because their maker may make none any more. */
  list(handle: Handle, scope: Scope, query: PortalSessionListQuery): Promise<Page<PortalSession>>
  /** Ends a session. Throws `not_found`. */
  delete(handle: Handle, scope: Scope, id: string): Promise<void>
  /** Uses a link. Of several requests with one link, one succeeds. Throws `not_found` for one that does not work. */
  open(db: Db, code: string): Promise<OpenedPortalSession>
  /**
   * Returns the customer of the session with this token. Null: there is none, it has ended, or its maker may no longer
   * do what it may. Notes that the session was used, where `isUse`.
   */
  find(db: Db, query: { token: string; isUse: boolean }): Promise<PortalCustomer | null>
}

/** How the portal looks where its session does not say. */
export type PortalTheme = { readonly accentColor: string | null; readonly colorScheme: ColorScheme }

export type PortalSessionServiceOptions = {
  clock: Clock
  /** Returns the URL of the service that links begin with, without a slash at the end. */
  serviceUrl: () => string
  theme: PortalTheme
}

export function createPortalSessionService(options: PortalSessionServiceOptions): PortalSessionService {
  const { clock, serviceUrl, theme } = options

  async function find(db: Db, { token, isUse }: { token: string; isUse: boolean }): Promise<PortalCustomer | null> {
    const secret = secretOf(token)
    if (secret === null) return null
    const hash = hashOfToken(secret)
    const row = await findSessionByHash(db, hash)
    if (row?.token_hash == null || !timingSafeEqual(row.token_hash, hash)) return null
    const now = clock.now()
    const permissions = permissionsOf(row, now)
    if (row.ends_at <= now || permissions.length === 0) return null
    const since = new Date(now.getTime() - touchMs)
    const isDue = isUse && row.last_used_at !== null && row.last_used_at <= since
    const endsAt = isDue ? earlier(new Date(now.getTime() + idleMs), row.expires_at) : row.ends_at
    if (isDue) await touchSession(db, { session: { accountId: row.account_id, id: row.id }, since, now, endsAt })
    const { id, plan, mode, customer, account_id: accountId } = row
    const eventTypes = typesOf(row)
    return {
      sessionId: id,
      accountId,
      plan,
      mode,
      customer,
      eventTypes,
      permissions,
      access: {
        id,
        mode,
        customer,
        eventTypes,
        permissions: [...permissions],
        theme: {
          accentColor: row.accent_color ?? theme.accentColor,
          colorScheme: row.color_scheme ?? theme.colorScheme,
        },
        expiresAt: endsAt.toISOString(),
      },
    }
  }

  return {
    async create(handle, scope, { customer, eventTypes, theme: chosen, permissions }) {
      if (!isGranted(permissions, 'webhooks:read')) {
        throw new DomainError(
          'authentication_error',
          'The portal shows webhooks, and the caller lacks the permission "webhooks:read": use a key that has it.',
        )
      }
      const { accountId, mode } = scope
      const { type, id: makerId } = scope.author.actor
      if (makerId === null) throw new Error('a portal session is made by a key or a user')
      const code = newToken()
      return inTransaction(handle, async (trx) => {
        // With the account locked, a concurrent call counts only after this one has inserted.
        await lockAccount(trx, accountId)
        const at = clock.now()
        const row: PortalSessionRow = {
          account_id: accountId,
          id: newId('portalSession', at),
          mode,
          customer,
          event_types: eventTypes ?? null,
          accent_color: chosen?.accentColor ?? null,
          color_scheme: chosen?.colorScheme ?? null,
          code_hash: hashOfToken(code),
          token_hash: null,
          created_by_type: type,
          created_by_id: makerId,
          created_at: at,
          opened_at: null,
          last_used_at: null,
          ends_at: new Date(at.getTime() + linkMs),
          expires_at: new Date(at.getTime() + maxMs),
        }
        await insertSession(trx, row)
        await deleteOldestSessions(trx, scope, { customer, kept: maxPortalSessions.customer })
        await deleteOldestSessions(trx, scope, { customer: null, kept: maxPortalSessions.account })
        // The code is in the fragment, which browsers send to no server.
        return { ...toSession(row), url: `${serviceUrl()}/portal/${row.id}#code=${code}` }
      })
    },
    async list(handle, scope, { limit, cursor, customer }) {
      const after = decodeCursor('portalSession', cursor)
      const rows = await selectSessions(handle, scope, {
        after,
        customer,
        limit: limit + 1,
        now: clock.now(),
        mayMake,
      })
      return pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: toSession })
    },
    async delete(handle, scope, id) {
      if (!(await deleteSession(handle, scope, id))) throw notFound('portal session', id)
    },
    async open(db, code) {
      const token = newToken()
      const now = clock.now()
      const endsAt = new Date(now.getTime() + idleMs)
      const opened = await takeCode(db, { codeHash: hashOfToken(code), tokenHash: hashOfToken(token), now, endsAt })
      const found = opened === undefined ? null : await find(db, { token: portalTokenPrefix + token, isUse: true })
      if (found === null) {
        throw new DomainError(
          'not_found',
          'This link was used already or has expired: load the page again for a new one.',
        )
      }
      return { ...found.access, token: portalTokenPrefix + token }
    },
    find,
  }
}

/** Returns the part of a token that is hashed, or null for other text. */
function secretOf(token: string): string | null {
  if (!token.startsWith(portalTokenPrefix)) return null
  const secret = token.slice(portalTokenPrefix.length)
  return hasTokenShape(secret) ? secret : null
}

/** Returns those of `portalPermissions` that the maker of the session has at present. */
function permissionsOf({ key_permissions, key_expires_at, role }: FoundSessionRow, now: Date): readonly Permission[] {
  const isExpired = key_expires_at !== null && key_expires_at <= now
  const held = (isExpired ? null : key_permissions) ?? (role === null ? [] : rolePermissions[role])
  // A maker who could not make the session now has lost it.
  if (!makerPermissions.every((permission) => isGranted(held, permission))) return []
  return portalPermissions.filter((permission) => isGranted(held, permission))
}

function earlier(one: Date, other: Date): Date {
  return one < other ? one : other
}

/** Types of a later version are left out. */
function typesOf({ event_types }: PortalSessionRow): EventTypeName[] | null {
  return event_types?.filter(isEventTypeName) ?? null
}

function toSession(row: PortalSessionRow): PortalSession {
  return {
    id: row.id,
    mode: row.mode,
    customer: row.customer,
    eventTypes: typesOf(row),
    createdAt: row.created_at.toISOString(),
    openedAt: row.opened_at?.toISOString() ?? null,
    expiresAt: row.ends_at.toISOString(),
  }
}
