import type { SecretBox } from '../secrets.ts'

/** The columns of a webhook with its secrets as they are stored: encrypted. */
export type SealedSecrets = {
  secret: Buffer
  /** What a rotation leaves behind. */
  previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
}

export type SigningSecrets = {
  secret: string
  /** The secret before the latest rotation, while it still signs beside the new one. */
  previousSecret: string | null
}

/** The secrets that sign an attempt at `now`. Throws when they cannot be decrypted. */
export function signingSecretsOf(row: SealedSecrets, secretBox: SecretBox, now: Date): SigningSecrets {
  const { previous_secret: previous, previous_secret_expires_at: expiresAt } = row
  const isPreviousValid = previous !== null && expiresAt !== null && expiresAt.getTime() > now.getTime()
  return {
    secret: secretBox.open(row.secret),
    previousSecret: isPreviousValid ? secretBox.open(previous) : null,
  }
}
