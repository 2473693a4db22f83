import type { ProveAgain } from '../../contract/passkeys.ts'
import { type Db, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { DomainError } from '../shared/errors.ts'
import { getUser, type UserRow } from './queries.ts'
import { checkSecondFactor } from './second-factor.ts'
import { findSession } from './session-queries.ts'
import { type Client, type SignedIn, sessionEnded } from './sessions.ts'
import type { SignInService } from './sign-in.ts'

/** A user without a password proves who they are by having signed in within this time. Minutes. */
const recentMinutes = 10

/**
 * Proves again who a signed-in user is, before a way to sign in is added that replaces password and second factor: asks
 * for both. Returns the user. Throws `authentication_error`, `second_factor_needed` and `rate_limit_exceeded`.
 *
 * Wrong passwords and codes are counted, so `db` must not be a transaction that is then rolled back.
 */
export type Prove = (db: Db, signedIn: SignedIn, given: { proof: ProveAgain; client: Client }) => Promise<UserRow>

export type ProofOptions = { clock: Clock; secretBox: SecretBox; signIn: Pick<SignInService, 'confirmPassword'> }

export function createProof({ clock, secretBox, signIn }: ProofOptions): Prove {
  async function bySession(db: Db, user: UserRow, { sessionId }: SignedIn): Promise<UserRow> {
    const session = await findSession(db, { id: sessionId, userId: user.id })
    if (session === undefined) throw sessionEnded()
    if (clock.now().getTime() - session.created_at.getTime() <= recentMinutes * 60_000) return user
    throw new DomainError(
      'authentication_error',
      `You have no password here: sign out, sign in again, and do this within ${recentMinutes} minutes.`,
    )
  }

  return async (db, signedIn, { proof: { password, code }, client }) => {
    const { userId } = signedIn
    const user = await getUser(db, userId)
    if (user.password_hash === null) return bySession(db, user, signedIn)
    if (password === undefined) throw new DomainError('authentication_error', 'The password is needed.')
    const proved = await signIn.confirmPassword(db, { userId, password }, client)
    const fault = await inTransaction(db, (trx) =>
      checkSecondFactor(trx, { userId, code, at: clock.now(), secretBox, client }),
    )
    if (fault !== null) throw fault
    return proved
  }
}
