import type { Trx } from '../database/connection.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { DomainError } from '../shared/errors.ts'
import { countRecoveryCodes, lockUser, takeRecoveryCode, type UserRow, updateUser } from './queries.ts'
import { recordInAccounts } from './records.ts'
import { authorOf, type Client } from './sessions.ts'
import { delayAfter, tooMany } from './sign-in-delays.ts'
import { hashOfRecoveryCode, matchingStep } from './totp.ts'

export type SecondFactorCheck = {
  userId: string
  code: string | undefined
  at: Date
  secretBox: SecretBox
  client: Client
}

/**
 * Checks the second factor of a user whose password is right. Returns null when it is right, else the error. A wrong
 * code is counted in `trx`, so commit it in either case.
 *
 * Wrong codes are counted for the user, from all clients together: a client that tries codes knows the password
 * already, and a million codes are soon guessed. A recovery code is always accepted, since it cannot be guessed.
 */
export async function checkSecondFactor(
  trx: Trx,
  { userId, code, at, secretBox, client }: SecondFactorCheck,
): Promise<DomainError | null> {
  // The lock lets a code be used once, also by two requests at the same time.
  const user = await lockUser(trx, userId)
  if (user.totp_secret === null || user.totp_confirmed_at === null) return null
  if (code === undefined) {
    return new DomainError('second_factor_needed', 'The password is right: send the code of the authenticator app too.')
  }
  const recoveryHash = hashOfRecoveryCode(code)
  if (recoveryHash !== null && (await takeRecoveryCode(trx, userId, recoveryHash))) {
    await updateUser(trx, userId, { totp_failures: 0 })
    const details = { left: String(await countRecoveryCodes(trx, userId)) }
    const author = authorOf(user, client)
    await recordInAccounts(trx, { at, author, action: 'totp.recovery_code_used', user, details })
    return null
  }
  const waitMs = waitOf(user, at)
  if (waitMs > 0) return tooMany(waitMs)
  const secret = secretBox.open(user.totp_secret)
  const step = matchingStep(secret, { code, at, lastStep: user.totp_last_step })
  if (step === null) {
    await updateUser(trx, userId, { totp_failures: user.totp_failures + 1, totp_failed_at: at })
    return new DomainError('authentication_error', 'The code is not right, or was used before: send the next one.')
  }
  await updateUser(trx, userId, { totp_failures: 0, totp_last_step: step })
  return null
}

/**
 * Checks the first code of a secret that is not in use yet. Returns its time step, or the error. Wrong codes are counted
 * as `checkSecondFactor` does, so commit `trx` in either case: who guesses one gets the recovery codes.
 */
export async function checkFirstCode(
  trx: Trx,
  { user, secret, code, at }: { user: UserRow; secret: string; code: string; at: Date },
): Promise<number | DomainError> {
  const waitMs = waitOf(user, at)
  if (waitMs > 0) return tooMany(waitMs)
  const step = matchingStep(secret, { code, at, lastStep: null })
  if (step !== null) return step
  await updateUser(trx, user.id, { totp_failures: user.totp_failures + 1, totp_failed_at: at })
  return new DomainError(
    'authentication_error',
    'The code is not right: look at the clock of the device, and send the present one.',
  )
}

/** Milliseconds until the next code is looked at. */
function waitOf({ totp_failures, totp_failed_at }: UserRow, at: Date): number {
  return totp_failed_at === null ? 0 : totp_failed_at.getTime() + delayAfter(totp_failures) - at.getTime()
}
