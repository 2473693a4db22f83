import type { SecretBox } from '../../secrets/secret-box.ts'
import { type SigningKey, signingKey } from './signature.ts'

/** The columns of a webhook that hold its secrets, encrypted. */
export type SealedSecrets = {
  secret: Buffer
  /** The secret before the last rotation. */
  previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
  /** The secrets of earlier rotations, newest first. */
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

/**
 * Maximum number of secrets that sign at the same time: the current one and four that were rotated in the last 24
 * hours.
 */
export const maxSigningSecrets = 5

/** A rotated secret and the time until which it still signs. */
export type PreviousSecret = { sealed: Buffer; expiresAt: Date }

/** Returns the rotated secrets that still sign at `now`: newest first, at most four. */
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
  /** The keys of rotated secrets that still sign, newest first. */
  previousKeys: readonly SigningKey[]
}

export type Keyring = {
  /** Returns the keys that sign an attempt at `now`. Throws if the secrets cannot be decrypted. */
  keysOf(row: SealedSecrets, now: Date): SigningKeys
}

/** Maximum number of keys cached; each takes some hundred bytes. */
const maxKept = 10_000

/**
 * Creates a keyring that decrypts secrets and caches the latest ones: decrypting costs more than the rest of a
 * signature.
 */
export function createKeyring(secretBox: SecretBox): Keyring {
  const kept = new Map<string, SigningKey>()

  function open(sealed: Buffer): SigningKey {
    // The cache key is the ciphertext. A rotated secret is encrypted anew, so an entry is never stale.
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
