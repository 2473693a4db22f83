import { timingSafeEqual } from 'node:crypto'
import type { AcceptLink, Link } from '../../contract/links.ts'
import type { Role } from '../../contract/roles.ts'
import { record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import {
  deleteFirstUserLinks,
  deleteResetLinks,
  type FoundLinkRow,
  findLinkByHash,
  insertLink,
  takeLink,
} from './link-queries.ts'
import { insertMember } from './member-queries.ts'
import { newPasswordOf } from './own-user.ts'
import { deletePasskeys } from './passkeys/queries.ts'
import { assertNewPassword, type Passwords } from './passwords.ts'
import { deleteIdentities } from './provider/queries.ts'
import { findUserByEmail, insertUser, lockUser, type UserRow, updateUser } from './queries.ts'
import { recordInAccounts } from './records.ts'
import { checkSecondFactor } from './second-factor.ts'
import { deleteSessions } from './session-queries.ts'
import { authorOf, type Client, type StartedSession, startSession } from './sessions.ts'
import { lockProved, type SignInService } from './sign-in.ts'
import { hashOfToken, hasTokenShape, newToken } from './tokens.ts'

const dayMs = 24 * 3_600_000
/** How long a link works. Milliseconds. */
const lifeMs = { first_user: 7 * dayMs, invitation: 7 * dayMs, password_reset: 3_600_000 } as const

export type NewLink = {
  kind: keyof typeof lifeMs
  accountId?: string
  userId?: string
  email?: string
  role?: Role
  createdBy?: string | null
  /** True: it goes to its person by email. Default: the caller shows it. */
  byEmail?: boolean
  at: Date
}

/** A new link. Its token is shown only once. */
export type MadeLink = { id: string; token: string; expiresAt: Date }

/** Stores a new link. */
export async function makeLink(trx: Trx, link: NewLink): Promise<MadeLink> {
  const token = newToken()
  const id = newId('invitation', link.at)
  const expiresAt = new Date(link.at.getTime() + lifeMs[link.kind])
  await insertLink(trx, {
    id,
    kind: link.kind,
    token_hash: hashOfToken(token),
    account_id: link.accountId ?? null,
    user_id: link.userId ?? null,
    email: link.email ?? null,
    role: link.role ?? null,
    created_by: link.createdBy ?? null,
    created_at: link.at,
    expires_at: expiresAt,
    by_email: link.byEmail ?? false,
  })
  return { id, token, expiresAt }
}

/** Returns the page that accepts a link. The token is in the fragment, which browsers send to no server. */
export function linkUrl(serviceUrl: string, token: string): string {
  return `${serviceUrl}/app/accept#token=${token}`
}

export type LinkService = {
  /** Returns what a link is for. Throws `not_found` for an unknown, used or expired one. */
  lookUp(handle: Handle, token: string): Promise<Link>
  /**
   * Uses a link and signs its user in. Of several requests with one link, one succeeds. Throws `not_found` as `lookUp`
   * does, `rule_violation` for a missing name or address or a bad password, `conflict` when the address of the first
   * user is taken, and what proving a password and a second factor throws.
   */
  accept(db: Db, given: AcceptLink, client: Client): Promise<StartedSession>
}

export type LinkServiceOptions = { clock: Clock; secretBox: SecretBox; passwords: Passwords; signIn: SignInService }

export function createLinkService({ clock, secretBox, passwords, signIn }: LinkServiceOptions): LinkService {
  async function find(handle: Handle, token: string): Promise<FoundLinkRow> {
    if (!hasTokenShape(token)) throw gone()
    const hash = hashOfToken(token)
    const link = await findLinkByHash(handle, hash)
    if (link === undefined || !timingSafeEqual(link.token_hash, hash) || link.expires_at <= clock.now()) throw gone()
    return link
  }

  type NewUser = { email: string; name: string | undefined; password: string; taken: string }

  /** Returns what makes the user, once the password is hashed, which takes long. */
  async function prepareUser({ email, name, password, taken }: NewUser): Promise<(trx: Trx) => Promise<UserRow>> {
    if (name === undefined) throw brokenRule('body.name', 'is needed for a new user')
    assertNewPassword(password, { email, path: 'body.password' })
    const passwordHash = await passwords.hash(password)
    return async (trx) => {
      const at = clock.now()
      const id = newId('user', at)
      const user = await insertUser(trx, { id, email: email.toLowerCase(), name: name.trim(), passwordHash, at })
      if (user === undefined) throw new DomainError('conflict', taken)
      return user
    }
  }

  type Accepting = { link: FoundLinkRow; given: AcceptLink; client: Client }

  /** Makes the member and starts a session, unless another request was first. */
  async function join(
    db: Db,
    { link, client }: Accepting,
    userOf: (trx: Trx) => Promise<UserRow>,
  ): Promise<StartedSession> {
    const { account_id: accountId, role } = link
    if (accountId === null || role === null) throw new Error('a link has no account')
    return inTransaction(db, async (trx) => {
      // Before the link: the same order as in every change of members.
      await lockAccount(trx, accountId)
      if (!(await takeLink(trx, link.id))) throw gone()
      const at = clock.now()
      const user = await verified(trx, { user: await userOf(trx), link, at })
      if (await insertMember(trx, { accountId, userId: user.id, role, at })) {
        await deleteFirstUserLinks(trx, accountId)
        const target = { type: 'user', id: user.id, name: user.name } as const
        const author = authorOf(user, client)
        await record(trx, { accountId, at, author, action: 'member.joined', target, details: { role } })
      }
      return startSession(trx, { user, client, at })
    })
  }

  async function acceptFirstUser(db: Db, accepting: Accepting): Promise<StartedSession> {
    const { name, email, password } = accepting.given
    if (email === undefined) throw brokenRule('body.email', 'is needed for the first user')
    const taken = 'There is a user with this address already: sign in, or ask for an invitation.'
    return join(db, accepting, await prepareUser({ email, name, password, taken }))
  }

  async function acceptInvitation(db: Db, accepting: Accepting): Promise<StartedSession> {
    const { link, given, client } = accepting
    const { name, password, code } = given
    const { email } = link
    if (email === null) throw new Error('an invitation has no address')
    if ((await findUserByEmail(db, email)) === undefined) {
      const taken = 'There is a user with this address by now: accept the link with the password they have.'
      return join(db, accepting, await prepareUser({ email, name, password, taken }))
    }
    const proved = await signIn.prove(db, { email, password, code }, client)
    return join(db, accepting, (trx) => lockProved(trx, proved))
  }

  async function acceptReset(db: Db, { link, given, client }: Accepting): Promise<StartedSession> {
    const { user_id: userId, email_of_user: email } = link
    if (userId === null || email === null) throw new Error('a link has no user')
    assertNewPassword(given.password, { email, path: 'body.password' })
    const hash = await passwords.hash(given.password)
    const at = clock.now()
    // A transaction of its own, since a wrong code must be counted.
    const fault = await inTransaction(db, (trx) =>
      checkSecondFactor(trx, { userId, code: given.code, at, secretBox, client }),
    )
    if (fault !== null) throw fault
    return inTransaction(db, async (trx) => {
      // First of all: a sign-in with the old password that has begun ends before, so its session is seen and deleted.
      const before = await lockUser(trx, userId)
      if (!(await takeLink(trx, link.id))) throw gone()
      await deleteResetLinks(trx, userId)
      await deleteSessions(trx, { userId, except: null })
      // Another person may have added them: the link is how an owner takes the user back.
      const passkeysRemoved = String(await deletePasskeys(trx, userId))
      const identitiesRemoved = String(await deleteIdentities(trx, userId))
      const changed = await updateUser(trx, userId, newPasswordOf(before, hash))
      const user = await verified(trx, { user: changed, link, at })
      const details = { passkeysRemoved, identitiesRemoved }
      await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'password.changed', user, details })
      return startSession(trx, { user, client, at })
    })
  }

  const acceptByKind = { first_user: acceptFirstUser, invitation: acceptInvitation, password_reset: acceptReset }

  return {
    async lookUp(handle, token) {
      const link = await find(handle, token)
      const email = link.email ?? link.email_of_user
      const user = email === null ? undefined : await findUserByEmail(handle, email)
      return {
        kind: link.kind,
        email,
        accountName: link.account_name,
        role: link.role,
        expiresAt: link.expires_at.toISOString(),
        hasUser: user !== undefined,
      }
    },
    async accept(db, given, client) {
      const link = await find(db, given.token)
      return acceptByKind[link.kind](db, { link, given, client })
    },
  }
}

/** Notes that the address of the user is verified: the link went there by email, and no other person saw it. */
async function verified(
  trx: Trx,
  { user, link, at }: { user: UserRow; link: FoundLinkRow; at: Date },
): Promise<UserRow> {
  if (!link.by_email || user.email_verified_at !== null) return user
  return updateUser(trx, user.id, { email_verified_at: at })
}

function gone(): DomainError {
  return new DomainError(
    'not_found',
    'This link does not work: it was used, has expired or was taken back. Ask for another.',
  )
}
