import type { Clock } from '../clock.ts'
import type { Db } from '../database/connection.ts'
import { openPrivateKey } from '../private-keys.ts'
import type { SecretBox } from '../secrets.ts'
import type { DkimSigner } from './message/dkim.ts'

/** As what a domain sends. */
export type Identity = {
  signer: DkimSigner
  /** The host of the return path. */
  returnPath: string
}

export type Signers = {
  /** Null: the domain is gone. What is answered may be a minute old. */
  of(domainId: string): Promise<Identity | null>
}

/** How long a key that was opened is kept: opening one costs more than signing with it. Milliseconds. */
const keptMs = 60_000
const maxKept = 10_000

/** The keys of the sending domains, opened once and kept for a minute. */
export function createSigners({ db, secretBox, clock }: { db: Db; secretBox: SecretBox; clock: Clock }): Signers {
  const kept = new Map<string, { until: number; identity: Promise<Identity | null> }>()

  async function read(domainId: string): Promise<Identity | null> {
    const row = await db
      .selectFrom('domains')
      .select(['name', 'return_path', 'rsa_selector', 'rsa_private_key', 'ed25519_selector', 'ed25519_private_key'])
      .where('id', '=', domainId)
      .executeTakeFirst()
    if (row === undefined) return null
    const open = (sealed: Buffer) => openPrivateKey(secretBox, sealed)
    return {
      returnPath: row.return_path,
      signer: {
        domain: row.name,
        keys: [
          { selector: row.rsa_selector, algorithm: 'rsa-sha256', privateKey: open(row.rsa_private_key) },
          { selector: row.ed25519_selector, algorithm: 'ed25519-sha256', privateKey: open(row.ed25519_private_key) },
        ],
      },
    }
  }

  return {
    of(domainId) {
      const now = clock.now().getTime()
      const known = kept.get(domainId)
      if (known !== undefined && known.until > now) return known.identity
      if (kept.size >= maxKept) kept.clear()
      const identity = read(domainId)
      kept.set(domainId, { until: now + keptMs, identity })
      // What could not be read is read anew.
      identity.catch(() => kept.delete(domainId))
      return identity
    },
  }
}
