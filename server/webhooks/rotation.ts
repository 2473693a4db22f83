import { maxSigningSecrets, type SealedSecrets, validPreviousSecrets } from '../webhook-delivery/attempt/keyring.ts'

/** How long a secret still signs after its rotation. Milliseconds: 24 hours. */
const previousSecretLifeMs = 24 * 3_600_000

/**
 * Returns the secrets to store when `sealed` becomes the secret at time `at`. The current secret becomes the previous
 * one, and previous ones that still sign become earlier ones, the latest first. Secrets beyond `maxSigningSecrets` are
 * dropped.
 */
export function rotated(before: SealedSecrets, sealed: Buffer, at: Date): SealedSecrets {
  const earlier = validPreviousSecrets(before, at).slice(0, maxSigningSecrets - 2)
  return {
    secret: sealed,
    previous_secret: before.secret,
    previous_secret_expires_at: new Date(at.getTime() + previousSecretLifeMs),
    earlier_secrets: earlier.map((one) => one.sealed),
    earlier_secrets_expire_at: earlier.map((one) => one.expiresAt),
  }
}
