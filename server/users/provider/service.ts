import { hash } from 'node:crypto'
import type { Logger } from 'pino'
import type { Identity, ProviderAnswer, ProviderRequest } from '../../../contract/identities.ts'
import type { Page, PageQuery } from '../../../contract/pagination.ts'
import type { ProveAgain } from '../../../contract/passkeys.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../../database/connection.ts'
import type { Clock } from '../../lib/clock.ts'
import { DomainError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../../shared/pagination.ts'
import { countPasskeys, useChallenge } from '../passkeys/queries.ts'
import type { Prove } from '../proof.ts'
import { getUser, lockUser, type UserRow } from '../queries.ts'
import { recordInAccounts } from '../records.ts'
import { findSession } from '../session-queries.ts'
import { authorOf, type Client, type SignedIn, type StartedSession, startSession } from '../sessions.ts'
import { type Person, type ProviderClient, ProviderFault, type ProviderSettings } from './client.ts'
import type { Pending, PendingRequests } from './pending.ts'
import {
  deleteIdentity,
  findIdentity,
  type IdentityRow,
  insertIdentity,
  isLinked,
  selectIdentities,
  touchIdentity,
} from './queries.ts'

/** A request to the provider, and what the browser carries until its answer comes. */
export type Begun = { request: ProviderRequest; pending: string }

/** An answer of the provider. `pending`: what the browser carried; null: nothing. */
export type Answered = { answer: ProviderAnswer; pending: string | null; client: Client }

/** Signing in with an identity provider. Throws DomainErrors: `not_found` without one, `unavailable` when it is out of reach. */
export type ProviderService = {
  begin(): Promise<Begun>
  /**
   * Starts a session of the user who is linked to the person. Throws `authentication_error` for an answer that this
   * browser did not ask for, and for a person whom no user is linked to.
   *
   * @param formerToken The token that the browser sent. The session of the user with it ends: the browser forgets it.
   */
  signIn(db: Db, given: Answered, formerToken?: string | null): Promise<StartedSession>
  list(handle: Handle, signedIn: SignedIn, page: PageQuery): Promise<Page<Identity>>
  /** Proves again who the user is. Throws what that throws, and `conflict` for a user who is linked already. */
  beginLink(db: Db, signedIn: SignedIn, given: { proof: ProveAgain; client: Client }): Promise<Begun>
  /** Throws `authentication_error` for an answer that this session did not ask for, and `conflict`. */
  link(db: Db, signedIn: SignedIn, given: Answered): Promise<Identity>
  /** Throws `not_found`, and `conflict` for the last way in. */
  unlink(db: Db, signedIn: SignedIn, given: { id: string; client: Client }): Promise<void>
}

export type ProviderOptions = {
  clock: Clock
  /** Null: the settings name none. */
  provider: { settings: ProviderSettings; client: ProviderClient } | null
  pendingRequests: PendingRequests
  prove: Prove
  logger: Logger
}

const signInBinding = 'sign in'

export function createProviderService(options: ProviderOptions): ProviderService {
  const { clock, provider, pendingRequests, prove, logger } = options

  function required() {
    if (provider !== null) return provider
    throw new DomainError(
      'not_found',
      'This service has no identity provider: its operator sets OIDC_ISSUER. Sign in with your password.',
    )
  }

  /** Asks the provider. Says nothing of the cause to the user, who may be anyone; the operator finds it in the log. */
  async function asking<T>(ask: (client: ProviderClient) => Promise<T>): Promise<T> {
    const { client, settings } = required()
    const answered = await ask(client).catch((error: unknown) => {
      if (error instanceof ProviderFault) return error
      throw error
    })
    if (!(answered instanceof ProviderFault)) return answered
    logger.warn({ err: answered, issuer: settings.issuer }, 'the identity provider failed')
    throw new DomainError(
      'unavailable',
      `${settings.name} cannot be asked just now. Try again in a moment, or sign in with your password; the log of the service says why.`,
    )
  }

  async function begin(binding: string): Promise<Begun> {
    const { url, ...expected } = await asking((client) => client.begin())
    return { request: { url }, pending: pendingRequests.seal(expected, binding) }
  }

  /** Returns the person that the provider names. Throws `authentication_error` for another answer than was asked for. */
  async function finish({ answer, pending }: Answered, binding: string): Promise<Person & { used: Pending['used'] }> {
    required()
    const opened = pendingRequests.open(pending, binding)
    // Compared here too, so that the provider is asked only with an answer of this browser.
    if (opened === null || opened.state !== answer.state) throw notAccepted()
    const { used, ...expected } = opened
    const person = await asking((client) => client.finish(answer, expected))
    if (person === null) throw notAccepted()
    return { ...person, used }
  }

  return {
    begin: () => begin(signInBinding),
    async signIn(db, given, formerToken = null) {
      const { used, ...person } = await finish(given, signInBinding)
      return inTransaction(db, async (trx) => {
        if (!(await useChallenge(trx, used))) throw notAccepted()
        const identity = await findIdentity(trx, person)
        if (identity === undefined) throw notLinked()
        // The user before the link, as in every change of links.
        const user = await lockUser(trx, identity.user_id)
        const at = clock.now()
        if (!(await touchIdentity(trx, { id: identity.id, at }))) throw notLinked()
        return startSession(trx, { user, client: given.client, at, formerToken, by: 'provider' })
      })
    },
    async list(handle, { userId }, { limit, cursor }) {
      const rows = await selectIdentities(handle, userId, { limit, after: decodeCursor('identity', cursor) })
      return pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: toIdentity })
    },
    async beginLink(db, signedIn, given) {
      const { settings } = required()
      const user = await prove(db, signedIn, given)
      if (await isLinked(db, { userId: user.id, issuer: settings.issuer })) throw linkedAlready()
      return begin(linkBinding(user, signedIn))
    },
    async link(db, signedIn, given) {
      const { userId, sessionId } = signedIn
      const before = await getUser(db, userId)
      const { used, ...person } = await finish(given, linkBinding(before, signedIn))
      return inTransaction(db, async (trx) => {
        const user = await lockUser(trx, userId)
        const isProved = user.password_hash === before.password_hash
        // Both may have ended since the request began: what is added here would outlast them.
        if (!isProved || (await findSession(trx, { id: sessionId, userId })) === undefined) throw notAccepted()
        if (!(await useChallenge(trx, used))) throw notAccepted()
        const at = clock.now()
        const row = await insertIdentity(trx, {
          id: newId('identity', at),
          user_id: userId,
          ...person,
          created_at: at,
        })
        if (row === undefined) throw linkedAlready()
        await recordLink(trx, { user, client: given.client, at, row, action: 'identity.linked' })
        return toIdentity(row)
      })
    },
    async unlink(db, { userId }, { id, client }) {
      await inTransaction(db, async (trx) => {
        const user = await lockUser(trx, userId)
        const row = await deleteIdentity(trx, { id, userId })
        if (row === undefined) throw new DomainError('not_found', `You have no link with the id "${id}".`)
        if (user.password_hash === null && (await countPasskeys(trx, userId)) === 0) {
          throw new DomainError('conflict', 'This is your only way to sign in: add a passkey first.')
        }
        await recordLink(trx, { user, client, at: clock.now(), row, action: 'identity.unlinked' })
      })
    },
  }
}

type Recording = {
  user: UserRow
  client: Client
  at: Date
  row: IdentityRow
  action: 'identity.linked' | 'identity.unlinked'
}

function recordLink(trx: Trx, { user, client, at, row, action }: Recording): Promise<void> {
  const details = { issuer: row.issuer, subject: row.subject }
  return recordInAccounts(trx, { at, author: authorOf(user, client), action, user, details })
}

/** A link is for the user and session that proved the password, while the user has that password. */
function linkBinding({ id, password_hash }: UserRow, { sessionId }: SignedIn): string {
  return `link ${id} ${sessionId} ${hash('sha256', password_hash ?? '')}`
}

function notAccepted(): DomainError {
  return new DomainError(
    'authentication_error',
    'This answer of the identity provider was not accepted: this browser did not ask for it, or it is too old or was used before. Begin again.',
  )
}

function notLinked(): DomainError {
  return new DomainError(
    'authentication_error',
    'No user is linked to you. Sign in with your password, and link the identity provider under Sign-in security.',
  )
}

function linkedAlready(): DomainError {
  return new DomainError(
    'conflict',
    'You are linked already, or another user is linked to this person: remove that link first.',
  )
}

function toIdentity(row: IdentityRow): Identity {
  return {
    id: row.id,
    issuer: row.issuer,
    label: row.label,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
  }
}
