import { timingSafeEqual } from 'node:crypto'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { type Role, rolePermissions } from '../../contract/roles.ts'
import { type ListedSession, type Session, sessionDays } from '../../contract/sessions.ts'
import type { User } from '../../contract/user.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Author } from '../shared/scope.ts'
import { deleteOldEmails } from './account-email-queries.ts'
import { selectAccountsOf } from './member-queries.ts'
import { deleteExpiredChallenges } from './passkeys/queries.ts'
import { getUser, type UserRow, updateUser } from './queries.ts'
import { recordInAccounts } from './records.ts'
import {
  type Alive,
  deleteEnded,
  deleteOldestSessions,
  deleteSession,
  deleteSessionByHash,
  deleteSessions,
  findSession,
  findSessionByHash,
  insertSession,
  type SessionRow,
  selectSessions,
  touchSession,
} from './session-queries.ts'
import { hashOfToken, hasTokenShape, newToken } from './tokens.ts'

const dayMs = 24 * 3_600_000
const idleMs = sessionDays.idle * dayMs
const maxMs = sessionDays.max * dayMs
/** The time of the last use is written at most this often. */
const touchMs = 60_000
/** Most sessions of a user. The oldest ends when there are more. */
const maxSessions = 100
const maxUserAgent = 300

/** Where a request comes from. */
export type Client = {
  ipAddress: string
  /** The address under which its failures are counted. For IPv6 a whole /64 network. */
  network: string
  userAgent: string
}

/** The user of a request with a session. */
export type SignedIn = {
  userId: string
  userName: string
  sessionId: string
  /** Whether the user is an operator of the service. */
  isOperator: boolean
  /** The membership of the user in the account of the request. Null: no member, or the request is about no account. */
  membership: { accountId: string; plan: string; role: Role } | null
}

/** A new session, or one with a new token. */
export type StartedSession = {
  session: Session
  /** The value of the cookie. It cannot be read again. */
  token: string
}

/** The sessions of the dashboard. Throws DomainErrors. */
export type SessionService = {
  /**
   * Returns the user of the session with this token, or null when there is no such session or it has ended. Notes that
   * the session was used, where `isUse`.
   */
  find(
    db: Db,
    query: { token: string; accountId: string | null; ipAddress: string; isUse: boolean },
  ): Promise<SignedIn | null>
  /** Returns the session as clients see it. */
  get(handle: Handle, signedIn: SignedIn): Promise<Session>
  /** Ends the session of the request. */
  signOut(db: Db, signedIn: SignedIn, client: Client): Promise<void>
  list(handle: Handle, signedIn: SignedIn, page: PageQuery): Promise<Page<ListedSession>>
  /** Ends a session of the user. Throws `not_found`. */
  end(db: Db, signedIn: SignedIn, target: { id: string; client: Client }): Promise<void>
  /** Ends all sessions of the user but that of the request. */
  endOthers(db: Db, signedIn: SignedIn, client: Client): Promise<void>
}

export function createSessionService({ clock }: { clock: Clock }): SessionService {
  return {
    async find(db, { token, accountId, ipAddress, isUse }) {
      if (!hasTokenShape(token)) return null
      const hash = hashOfToken(token)
      const row = await findSessionByHash(db, { hash, accountId })
      if (row === undefined || !timingSafeEqual(row.token_hash, hash)) return null
      const now = clock.now()
      if (endOf(row) <= now) return null
      const since = new Date(now.getTime() - touchMs)
      if (isUse && row.last_used_at <= since) await touchSession(db, { id: row.id, at: now, since, ipAddress })
      const { account_id, plan, role } = row
      const isMember = account_id !== null && plan !== null && role !== null
      return {
        userId: row.user_id,
        userName: row.user_name,
        sessionId: row.id,
        isOperator: row.is_operator,
        membership: isMember ? { accountId: account_id, plan, role } : null,
      }
    },
    async get(handle, { userId, sessionId }) {
      const user = await getUser(handle, userId)
      const row = await findSession(handle, { id: sessionId, userId })
      if (row === undefined) throw sessionEnded()
      return toSession(handle, user, row)
    },
    async signOut(db, signedIn, client) {
      await inTransaction(db, async (trx) => {
        const gone = await deleteSession(trx, { id: signedIn.sessionId, userId: signedIn.userId })
        if (gone !== undefined) await tell(trx, signedIn, { client, action: 'session.signed_out', at: clock.now() })
      })
    },
    async list(handle, { userId, sessionId }, { limit, cursor }) {
      const after = decodeCursor('session', cursor)
      const rows = await selectSessions(handle, userId, { limit, after, ...aliveAt(clock.now()) })
      return pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: (row) => toListed(row, sessionId) })
    },
    async end(db, signedIn, { id, client }) {
      await inTransaction(db, async (trx) => {
        const gone = await deleteSession(trx, { id, userId: signedIn.userId })
        if (gone === undefined) throw new DomainError('not_found', `You have no session with the id "${id}".`)
        await tell(trx, signedIn, { client, action: 'session.ended', at: clock.now() })
      })
    },
    async endOthers(db, signedIn, client) {
      await inTransaction(db, async (trx) => {
        const gone = await deleteSessions(trx, { userId: signedIn.userId, except: signedIn.sessionId })
        if (gone > 0) await tell(trx, signedIn, { client, action: 'session.ended', at: clock.now() })
      })
    },
  }
}

type Telling = { client: Client; action: 'session.signed_out' | 'session.ended'; at: Date }

async function tell(trx: Trx, { userId, userName }: SignedIn, { client, action, at }: Telling): Promise<void> {
  const user = { id: userId, name: userName }
  await recordInAccounts(trx, { at, author: authorOf(user, client), action, user })
}

/** Returns the author of what a user does. */
export function authorOf({ id, name }: { id: string; name: string }, { ipAddress }: Client): Author {
  return { actor: { type: 'user', id, name }, ipAddress }
}

/** The error for a session that ended while its request was on the way. */
export function sessionEnded(): DomainError {
  return new DomainError('authentication_error', 'The session has ended: sign in again.')
}

type Starting = {
  user: UserRow
  client: Client
  at: Date
  /** The token that the browser sent. The session of the user with it ends: the browser forgets it. Default: none. */
  formerToken?: string | null
  /** The method of authentication, for the audit log. Default: the password, or a link. */
  by?: 'passkey' | 'provider'
}

/** Starts a session of a user who has proved who they are. */
export async function startSession(
  trx: Trx,
  { user, client, at, formerToken = null, by }: Starting,
): Promise<StartedSession> {
  if (formerToken !== null && hasTokenShape(formerToken)) {
    await deleteSessionByHash(trx, { hash: hashOfToken(formerToken), userId: user.id })
  }
  const token = newToken()
  const row: SessionRow = {
    id: newId('session', at),
    user_id: user.id,
    token_hash: hashOfToken(token),
    created_at: at,
    last_used_at: at,
    expires_at: new Date(at.getTime() + maxMs),
    ip_address: client.ipAddress,
    user_agent: client.userAgent.slice(0, maxUserAgent),
  }
  await insertSession(trx, row)
  await deleteOldestSessions(trx, user.id, maxSessions)
  const signedIn = await updateUser(trx, user.id, { last_signed_in_at: at })
  const details = by === undefined ? {} : { by }
  await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'session.signed_in', user, details })
  return { session: await toSession(trx, signedIn, row), token }
}

/** Deletes sessions, links, challenges and emails to users that have ended, of all accounts. */
export async function deleteEndedSessions({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  const now = clock.now()
  await deleteEnded(db, aliveAt(now))
  await deleteExpiredChallenges(db, now)
  const daysAgo = (days: number) => new Date(now.getTime() - days * dayMs)
  // The link of an invitation has expired by then.
  await deleteOldEmails(db, { doneBefore: daysAgo(1), before: daysAgo(8) })
}

function aliveAt(now: Date): Alive {
  return { now, usedSince: new Date(now.getTime() - idleMs) }
}

/** Returns when a session ends if it is not used before. */
function endOf({ last_used_at, expires_at }: Pick<SessionRow, 'last_used_at' | 'expires_at'>): Date {
  return new Date(Math.min(last_used_at.getTime() + idleMs, expires_at.getTime()))
}

async function toSession(handle: Handle, user: UserRow, row: SessionRow): Promise<Session> {
  const accounts = await selectAccountsOf(handle, user.id)
  return {
    user: toUser(user),
    session: { id: row.id, createdAt: row.created_at.toISOString(), expiresAt: endOf(row).toISOString() },
    accounts: accounts.map((account) => ({ ...account, permissions: [...rolePermissions[account.role]] })),
  }
}

/** Returns the user as clients see it. */
export function toUser(row: UserRow): User {
  return {
    id: row.id,
    name: row.name,
    email: row.email,
    isOperator: row.is_operator,
    hasPassword: row.password_hash !== null,
    hasTotp: row.totp_confirmed_at !== null,
    createdAt: row.created_at.toISOString(),
  }
}

function toListed(row: SessionRow, currentId: string): ListedSession {
  return {
    id: row.id,
    createdAt: row.created_at.toISOString(),
    lastUsedAt: row.last_used_at.toISOString(),
    ipAddress: row.ip_address,
    userAgent: row.user_agent,
    isCurrent: row.id === currentId,
    expiresAt: endOf(row).toISOString(),
  }
}
