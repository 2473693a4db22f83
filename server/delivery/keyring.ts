import type { SecretBox } from '../secrets.ts'
import { type SigningKey, signingKey } from './signature.ts'

/** The columns of a webhook with its secrets as they are stored: encrypted. */
export type SealedSecrets = {
  secret: Buffer
  /** What a rotation leaves behind. */
  previous_secret: Buffer | null
  previous_secret_expires_at: Date | null
}

export type SigningKeys = {
  key: SigningKey
  /** That of the secret before the latest rotation, while it still signs beside the new one. */
  previousKey: SigningKey | null
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
    keysOf({ secret, previous_secret: previous, previous_secret_expires_at: expiresAt }, now) {
      const isPreviousValid = previous !== null && expiresAt !== null && expiresAt.getTime() > now.getTime()
      return { key: open(secret), previousKey: isPreviousValid ? open(previous) : null }
    },
  }
}
