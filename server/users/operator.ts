import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { commandLine } from '../shared/scope.ts'
import { deleteResetLinks } from './link-queries.ts'
import { linkUrl, makeLink } from './links.ts'
import { selectAccountsOf } from './member-queries.ts'
import { noTotp } from './own-user.ts'
import { deletePasskeys } from './passkeys/queries.ts'
import { deleteIdentities } from './provider/queries.ts'
import {
  findUserByEmail,
  hasUsers,
  type ListedUserRow,
  lockUser,
  replaceRecoveryCodes,
  selectUsers,
  type UserRow,
  updateUser,
} from './queries.ts'
import { recordInAccounts } from './records.ts'
import { deleteSessions } from './session-queries.ts'

/** A user as the command line shows it. */
export type UserInfo = {
  id: string
  email: string
  name: string
  isOperator: boolean
  hasTotp: boolean
  createdAt: string
  lastSignedInAt: string | null
  /** When the address was verified. Null: it is not. */
  emailVerifiedAt: string | null
  memberships: { accountId: string; role: string }[]
}

/** Operations on users for the operator of the service. Throws `not_found` for an unknown address. */
export type UserOperatorService = {
  hasUsers(handle: Handle): Promise<boolean>
  list(handle: Handle): Promise<UserInfo[]>
  /** Returns a link that makes the first user, an owner of the account. */
  inviteFirst(handle: Handle, accountId: string): Promise<string>
  /**
   * Returns a link that sets a new password. Earlier ones end.
   *
   * @param removeTotp Also removes the second factor and the passkeys, and ends all sessions. Default: no.
   */
  resetPassword(handle: Handle, email: string, options?: { removeTotp?: boolean }): Promise<ResetLink>
  /** Returns a user as `list` does. */
  find(handle: Handle, email: string): Promise<UserInfo>
  /** Marks a user as an operator, or as none. */
  setOperator(handle: Handle, email: string, isOperator: boolean): Promise<UserInfo>
}

/** @property hasTotp True when a code is needed as well. */
export type ResetLink = { link: string; expiresAt: string; hasTotp: boolean }

/** @param serviceUrl Returns the URL of the service that links begin with, without a slash at the end. */
export function createUserOperatorService({
  clock,
  serviceUrl,
}: {
  clock: Clock
  serviceUrl: () => string
}): UserOperatorService {
  async function userWith(handle: Handle, email: string): Promise<UserRow> {
    const user = await findUserByEmail(handle, email)
    if (user === undefined) throw new DomainError('not_found', `There is no user with the address "${email}".`)
    return user
  }

  return {
    hasUsers,
    async list(handle) {
      return (await selectUsers(handle)).map(toInfo)
    },
    async find(handle, email) {
      return infoOf(handle, await userWith(handle, email))
    },
    async inviteFirst(handle, accountId) {
      return inTransaction(handle, async (trx) => {
        const { token } = await makeLink(trx, { kind: 'first_user', accountId, role: 'owner', at: clock.now() })
        return linkUrl(serviceUrl(), token)
      })
    },
    async resetPassword(handle, email, { removeTotp = false } = {}) {
      return inTransaction(handle, async (trx) => {
        const user = await lockUser(trx, (await userWith(trx, email)).id)
        const at = clock.now()
        await deleteResetLinks(trx, user.id)
        if (removeTotp) {
          await updateUser(trx, user.id, noTotp)
          await replaceRecoveryCodes(trx, user.id, [])
          await deletePasskeys(trx, user.id)
          await deleteIdentities(trx, user.id)
          await deleteSessions(trx, { userId: user.id, except: null })
          if (user.totp_confirmed_at !== null) {
            await recordInAccounts(trx, { at, author: commandLine, action: 'totp.disabled', user })
          }
        }
        const { token, expiresAt } = await makeLink(trx, { kind: 'password_reset', userId: user.id, at })
        await recordInAccounts(trx, { at, author: commandLine, action: 'password.reset_link_created', user })
        return {
          link: linkUrl(serviceUrl(), token),
          expiresAt: expiresAt.toISOString(),
          hasTotp: user.totp_confirmed_at !== null && !removeTotp,
        }
      })
    },
    async setOperator(handle, email, isOperator) {
      return inTransaction(handle, async (trx) => {
        const before = await lockUser(trx, (await userWith(trx, email)).id)
        const user = await updateUser(trx, before.id, { is_operator: isOperator })
        if (before.is_operator !== isOperator) {
          const action = isOperator ? 'user.operator_added' : 'user.operator_removed'
          await recordInAccounts(trx, { at: clock.now(), author: commandLine, action, user })
        }
        return infoOf(trx, user)
      })
    },
  }
}

async function infoOf(handle: Handle, user: UserRow): Promise<UserInfo> {
  const accounts = await selectAccountsOf(handle, user.id)
  return toInfo({ ...user, memberships: accounts.map(({ id, role }) => ({ accountId: id, role })) })
}

function toInfo(row: ListedUserRow): UserInfo {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    isOperator: row.is_operator,
    hasTotp: row.totp_confirmed_at !== null,
    createdAt: row.created_at.toISOString(),
    lastSignedInAt: row.last_signed_in_at?.toISOString() ?? null,
    emailVerifiedAt: row.email_verified_at?.toISOString() ?? null,
    memberships: row.memberships,
  }
}
