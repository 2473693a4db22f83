import type { SecretBox } from '../../secrets/secret-box.ts'
import { type SigningKey, signingKey } from './signature.ts'

/** The columns of a webhook with its secrets as they are stored: encrypted. */
export type SealedSecrets = {
  secret: Buffer
  /** What a rotation leaves behind. */
  previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
  /** What earlier rotations left behind, newest first. */
  earlier_secrets: Buffer[]
  earlier_secrets_expire_at: Date[]
}

/** The names of these columns, for statements that read them. */
export const sealedSecretColumns = [
  'secret',
  'previous_secret',
  'previous_secret_expires_at',
  'earlier_secrets',
  'earlier_secrets_expire_at',
] as const satisfies readonly (keyof SealedSecrets)[]

/** Secrets that sign at the same time, at most: the present one and four that were rotated in the last 24 hours. */
export const maxSigningSecrets = 5

/** A secret that was rotated, and until when it still signs. */
export type PreviousSecret = { sealed: Buffer; expiresAt: Date }

/** The secrets that still sign at `now` beside the present one: newest first, at most four. */
export function validPreviousSecrets(row: SealedSecrets, now: Date): PreviousSecret[] {
  const latest = { sealed: row.previous_secret, expiresAt: row.previous_secret_expires_at }
  const earlier = row.earlier_secrets.map((sealed, index) => ({
    sealed,
    expiresAt: row.earlier_secrets_expire_at[index] ?? null,
  }))
  return [latest, ...earlier]
    .flatMap(({ sealed, expiresAt }) => (sealed !== null && expiresAt !== null ? [{ sealed, expiresAt }] : []))
    .filter(({ expiresAt }) => expiresAt.getTime() > now.getTime())
    .slice(0, maxSigningSecrets - 1)
}

export type SigningKeys = {
  key: SigningKey
  /** Those of the secrets that still sign beside the present one, newest first. */
  previousKeys: readonly SigningKey[]
}

export type Keyring = {
  /** The keys that sign an attempt at `now`. Throws when the secrets cannot be decrypted. */
  keysOf(row: SealedSecrets, now: Date): SigningKeys
}

/** Keys kept ready; each is some hundred bytes. */
const maxKept = 10_000

/** Opens secrets and keeps the latest, since decrypting one costs more than all the rest of a signature. */
export function createKeyring(secretBox: SecretBox): Keyring {
  const kept = new Map<string, SigningKey>()

  function open(sealed: Buffer): SigningKey {
    // A rotated secret is sealed anew, so what is kept is never stale.
    const name = sealed.toString('latin1')
    const known = kept.get(name)
    if (known !== undefined) return known
    const key = signingKey(secretBox.open(sealed))
    const [oldest] = kept.keys()
    if (kept.size >= maxKept && oldest !== undefined) kept.delete(oldest)
    kept.set(name, key)
    return key
  }

  return {
    keysOf(row, now) {
      const previousKeys = validPreviousSecrets(row, now).map(({ sealed }) => open(sealed))
      return { key: open(row.secret), previousKeys }
    },
  }
}
