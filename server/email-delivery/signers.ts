import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { DkimSigner } from '../message/dkim.ts'
import { openPrivateKey } from '../secrets/private-keys.ts'
import type { SecretBox } from '../secrets/secret-box.ts'

export type Signers = {
  /** Returns the DKIM keys of a domain, up to a minute old; null: the domain was deleted. */
  of(domainId: string): Promise<DkimSigner | null>
}

/** How long a decrypted key is cached: decrypting it costs more than signing with it. Milliseconds. */
const keptMs = 60_000
const maxKept = 10_000

/**
 * Creates a cache of the DKIM keys of sending domains. Each is decrypted once and cached for a minute. The cache does
 * not tell whether a domain still exists and may be sent from: that is read with the emails.
 */
export function createSigners({ db, secretBox, clock }: { db: Db; secretBox: SecretBox; clock: Clock }): Signers {
  const kept = new Map<string, { until: number; signer: Promise<DkimSigner | null> }>()

  async function read(domainId: string): Promise<DkimSigner | null> {
    const row = await db
      .selectFrom('domains')
      .select(['name', 'rsa_selector', 'rsa_private_key', 'ed25519_selector', 'ed25519_private_key'])
      .where('id', '=', domainId)
      .executeTakeFirst()
    if (row === undefined) return null
    const open = (sealed: Buffer) => openPrivateKey(secretBox, sealed)
    return {
      domain: row.name,
      keys: [
        { selector: row.rsa_selector, algorithm: 'rsa-sha256', privateKey: open(row.rsa_private_key) },
        { selector: row.ed25519_selector, algorithm: 'ed25519-sha256', privateKey: open(row.ed25519_private_key) },
      ],
    }
  }

  return {
    async of(domainId) {
      const now = clock.now().getTime()
      const known = kept.get(domainId)
      if (known !== undefined && known.until > now) return known.signer
      if (kept.size >= maxKept) kept.clear()
      const signer = read(domainId)
      kept.set(domainId, { until: now + keptMs, signer })
      // Failed reads and missing domains are not cached.
      const forget = () => void kept.delete(domainId)
      signer.then((found) => found === null && forget(), forget)
      return signer
    },
  }
}
