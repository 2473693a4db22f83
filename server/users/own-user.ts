import {
  type NewTotp,
  type RecoveryCodes,
  totpConfirmMinutes,
  type UpdateUser,
  type User,
} from '../../contract/user.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { DomainError } from '../shared/errors.ts'
import { deleteResetLinks } from './link-queries.ts'
import { assertNewPassword, type Passwords } from './passwords.ts'
import { lockUser, replaceRecoveryCodes, type UserRow, updateUser } from './queries.ts'
import { recordInAccounts } from './records.ts'
import { checkFirstCode } from './second-factor.ts'
import { deleteSessions, replaceToken } from './session-queries.ts'
import { authorOf, type Client, type SignedIn, toUser } from './sessions.ts'
import { lockProved, type SignInService } from './sign-in.ts'
import { hashOfToken, newToken } from './tokens.ts'
import { hashOfRecoveryCode, newRecoveryCodes, newTotpSecret, totpUri } from './totp.ts'

const issuer = 'Postern'

/** Changes by a user to their own name, password and second factor. Throws DomainErrors. */
export type OwnUserService = {
  /**
   * Changes name or password. A new password ends all other sessions and gives this one a new token; without one,
   * `token` is null. Throws `authentication_error` for a wrong password and `rule_violation` for a bad new one.
   */
  update(db: Db, signedIn: SignedIn, change: { given: UpdateUser; client: Client }): Promise<Changed>
  /** Makes the secret of a second factor, to be confirmed. Throws `authentication_error`, and `conflict` if one is in use. */
  createTotp(db: Db, signedIn: SignedIn, given: { password: string; client: Client }): Promise<NewTotp>
  /** Puts the secret into use. Throws `authentication_error` for a wrong code, `conflict` when there is no such secret. */
  confirmTotp(db: Db, signedIn: SignedIn, given: { code: string; client: Client }): Promise<RecoveryCodes>
  /** Removes the second factor, if there is one. Throws `authentication_error` for a wrong password. */
  removeTotp(db: Db, signedIn: SignedIn, given: { password: string; client: Client }): Promise<void>
}

type Changed = { user: User; token: string | null }

export type OwnUserOptions = { clock: Clock; secretBox: SecretBox; passwords: Passwords; signIn: SignInService }

export function createOwnUserService({ clock, secretBox, passwords, signIn }: OwnUserOptions): OwnUserService {
  /** Returns the hash of the new password, and that of the checked current one. */
  async function checkedPassword(
    db: Db,
    { userId }: SignedIn,
    { password, client }: { password: NonNullable<UpdateUser['password']>; client: Client },
  ): Promise<{ hash: string; proved: UserRow }> {
    const proved = await signIn.confirmPassword(db, { userId, password: password.current }, client)
    assertNewPassword(password.new, { email: proved.email, path: 'body.password.new' })
    return { hash: await passwords.hash(password.new), proved }
  }

  async function rename(
    trx: Trx,
    before: UserRow,
    { name = before.name, client }: { name: string | undefined; client: Client },
  ): Promise<UserRow> {
    if (name === before.name) return before
    const user = await updateUser(trx, before.id, { name })
    const details = { from: before.name }
    await recordInAccounts(trx, {
      at: clock.now(),
      author: authorOf(user, client),
      action: 'user.renamed',
      user,
      details,
    })
    return user
  }

  return {
    async update(db, signedIn, { given, client }) {
      const { userId, sessionId } = signedIn
      const { password } = given
      const name = given.name?.trim()
      const changed = password === undefined ? null : await checkedPassword(db, signedIn, { password, client })
      return inTransaction(db, async (trx) => {
        if (changed === null) {
          const before = await lockUser(trx, userId)
          return { user: toUser(await rename(trx, before, { name, client })), token: null }
        }
        const before = await lockProved(trx, changed.proved)
        await rename(trx, before, { name, client })
        const user = await updateUser(trx, userId, newPasswordOf(before, changed.hash))
        await deleteSessions(trx, { userId, except: sessionId })
        await deleteResetLinks(trx, userId)
        const token = newToken()
        await replaceToken(trx, sessionId, hashOfToken(token))
        const author = authorOf(user, client)
        await recordInAccounts(trx, { at: clock.now(), author, action: 'password.changed', user })
        return { user: toUser(user), token }
      })
    },
    async createTotp(db, { userId }, { password, client }) {
      const proved = await signIn.confirmPassword(db, { userId, password }, client)
      const secret = newTotpSecret()
      return inTransaction(db, async (trx) => {
        const user = await lockProved(trx, proved)
        if (user.totp_confirmed_at !== null) {
          throw new DomainError('conflict', 'You have a second factor already: remove it first.')
        }
        const totp_secret = secretBox.seal(secret)
        await updateUser(trx, userId, { totp_secret, totp_made_at: clock.now(), totp_last_step: null })
        return { secret, uri: totpUri({ secret, email: user.email, issuer }) }
      })
    },
    async confirmTotp(db, { userId }, { code, client }) {
      const confirmed = await inTransaction(db, async (trx) => {
        const user = await lockUser(trx, userId)
        const at = clock.now()
        if (user.totp_secret === null || user.totp_confirmed_at !== null || isTooOld(user, at)) {
          throw new DomainError('conflict', 'There is no second factor to confirm: begin with POST /v1/user/totp.')
        }
        const step = await checkFirstCode(trx, { user, secret: secretBox.open(user.totp_secret), code, at })
        if (step instanceof DomainError) return step
        const recoveryCodes = newRecoveryCodes()
        const hashes = recoveryCodes.map((one) => hashOfRecoveryCode(one) ?? Buffer.alloc(0))
        await replaceRecoveryCodes(trx, userId, hashes)
        await updateUser(trx, userId, { totp_confirmed_at: at, totp_last_step: step, totp_failures: 0 })
        await recordInAccounts(trx, { at, author: authorOf(user, client), action: 'totp.enabled', user })
        return { recoveryCodes }
      })
      // Thrown here alone: the wrong code has been counted by now.
      if (confirmed instanceof DomainError) throw confirmed
      return confirmed
    },
    async removeTotp(db, { userId }, { password, client }) {
      const proved = await signIn.confirmPassword(db, { userId, password }, client)
      await inTransaction(db, async (trx) => {
        const before = await lockProved(trx, proved)
        if (before.totp_confirmed_at === null) {
          // The wrong codes stay counted.
          await updateUser(trx, userId, { totp_secret: null })
          return
        }
        const user = await updateUser(trx, userId, noTotp)
        await replaceRecoveryCodes(trx, userId, [])
        const author = authorOf(user, client)
        await recordInAccounts(trx, { at: clock.now(), author, action: 'totp.disabled', user })
      })
    },
  }
}

/** Returns true for a secret that was not confirmed in time. One from before the column `totp_made_at` is. */
function isTooOld({ totp_made_at }: UserRow, at: Date): boolean {
  return totp_made_at === null || at.getTime() - totp_made_at.getTime() >= totpConfirmMinutes * 60_000
}

/** Returns what a new password changes. A secret that is not confirmed ends: another person may have made it. */
export function newPasswordOf(
  { totp_confirmed_at }: UserRow,
  password_hash: string,
): { password_hash: string; totp_secret?: null } {
  return totp_confirmed_at === null ? { password_hash, totp_secret: null } : { password_hash }
}

/** A user without a second factor. */
export const noTotp = {
  totp_secret: null,
  totp_made_at: null,
  totp_confirmed_at: null,
  totp_last_step: null,
  totp_failures: 0,
  totp_failed_at: null,
} as const
