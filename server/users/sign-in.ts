import type { SignIn } from '../../contract/sessions.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { DomainError } from '../shared/errors.ts'
import type { Passwords } from './passwords.ts'
import { findUserByEmail, getUser, lockUser, type UserRow } from './queries.ts'
import { checkSecondFactor } from './second-factor.ts'
import { type Client, type StartedSession, startSession } from './sessions.ts'
import type { SignInDelays } from './sign-in-delays.ts'

export type SignInOptions = { clock: Clock; secretBox: SecretBox; passwords: Passwords; delays: SignInDelays }

/** Signing in, and proving an identity again. Throws DomainErrors. */
export type SignInService = {
  /**
   * Starts a session. Throws `authentication_error` in the same words and after the same work for an unknown address
   * and a wrong password, `second_factor_needed` when the password is right and the user has a second factor, and
   * `rate_limit_exceeded` after too many failures.
   *
   * @param formerToken The token that the browser sent. The session of the user with it ends: the browser forgets it.
   */
  signIn(db: Db, given: SignIn, client: Client, formerToken?: string | null): Promise<StartedSession>
  /**
   * Returns the user with this address after checking password and second factor, as `signIn` does.
   *
   * Wrong passwords and codes are counted, so `db` must not be a transaction that is then rolled back.
   */
  prove(db: Db, given: SignIn, client: Client): Promise<UserRow>
  /** Returns the user after checking the password alone. Throws `authentication_error` and `rate_limit_exceeded`. */
  confirmPassword(db: Db, given: { userId: string; password: string }, client: Client): Promise<UserRow>
}

/**
 * Locks a user whose password was checked before the transaction began. Throws `authentication_error` when the password
 * was changed since: the sessions of the old one have just ended, and it opens nothing more.
 */
export async function lockProved(trx: Trx, proved: Pick<UserRow, 'id' | 'password_hash'>): Promise<UserRow> {
  const user = await lockUser(trx, proved.id)
  if (user.password_hash === proved.password_hash) return user
  throw new DomainError('authentication_error', 'The password was changed just now: sign in with the new one.')
}

export function createSignInService({ clock, secretBox, passwords, delays }: SignInOptions): SignInService {
  async function prove(db: Db, { email, password, code }: SignIn, client: Client): Promise<UserRow> {
    const attempt = await delays.begin(db, { email, client: client.network })
    const user = await findUserByEmail(db, email)
    const isRight = await passwords.verify(user?.password_hash ?? null, password)
    if (user === undefined || !isRight) {
      throw new DomainError('authentication_error', 'The email address or the password is not right.')
    }
    const fault = await inTransaction(db, (trx) =>
      checkSecondFactor(trx, { userId: user.id, code, at: clock.now(), secretBox, client }),
    )
    if (fault === null) await attempt.succeeded()
    else if (code === undefined) await attempt.inconclusive()
    if (fault !== null) throw fault
    return user
  }

  return {
    prove,
    async signIn(db, given, client, formerToken = null) {
      const proved = await prove(db, given, client)
      return inTransaction(db, async (trx) => {
        const user = await lockProved(trx, proved)
        return startSession(trx, { user, client, at: clock.now(), formerToken })
      })
    },
    async confirmPassword(db, { userId, password }, client) {
      const user = await getUser(db, userId)
      const attempt = await delays.begin(db, { email: user.email, client: client.network })
      if (!(await passwords.verify(user.password_hash, password))) {
        throw new DomainError('authentication_error', 'The password is not right.')
      }
      await attempt.succeeded()
      return user
    },
  }
}
