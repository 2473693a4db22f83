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

/** Why nothing is sent from a domain: for good, or until it is verified again. */
export type Obstacle =
  | { kind: 'failed'; reason: string }
  | { kind: 'deferred'; reason: string; reply: null; host: null; unknown: false }

export type Standing = { identity: Identity; obstacle: null } | { identity: null; obstacle: Obstacle }

export type Signers = {
  /** Null: of an email whose domain is not known any more. That there is no obstacle may be a minute old. */
  of(domainId: string | null): Promise<Standing>
}

/** How long a key that was opened is kept: opening one costs more than signing with it. Milliseconds. */
const keptMs = 60_000
const maxKept = 10_000

/** The keys of the sending domains, opened once and kept for a minute. */
export function createSigners({ db, secretBox, clock }: { db: Db; secretBox: SecretBox; clock: Clock }): Signers {
  const kept = new Map<string, { until: number; standing: Promise<Standing> }>()

  async function read(domainId: string): Promise<Standing> {
    const row = await db
      .selectFrom('domains')
      .select(['name', 'status', 'return_path'])
      .select(['rsa_selector', 'rsa_private_key', 'ed25519_selector', 'ed25519_private_key'])
      .where('id', '=', domainId)
      .executeTakeFirst()
    if (row === undefined) return gone
    if (row.status !== 'verified') return { identity: null, obstacle: obstacleOf(row.name, row.status) }
    const open = (sealed: Buffer) => openPrivateKey(secretBox, sealed)
    const signer: DkimSigner = {
      domain: row.name,
      keys: [
        { selector: row.rsa_selector, algorithm: 'rsa-sha256', privateKey: open(row.rsa_private_key) },
        { selector: row.ed25519_selector, algorithm: 'ed25519-sha256', privateKey: open(row.ed25519_private_key) },
      ],
    }
    return { identity: { returnPath: row.return_path, signer }, obstacle: null }
  }

  return {
    async of(domainId) {
      if (domainId === null) return gone
      const now = clock.now().getTime()
      const known = kept.get(domainId)
      if (known !== undefined && known.until > now) return known.standing
      if (kept.size >= maxKept) kept.clear()
      const standing = read(domainId)
      kept.set(domainId, { until: now + keptMs, standing })
      // What could not be read, or keeps emails back, is read anew.
      const forget = () => void kept.delete(domainId)
      standing.then(({ obstacle }) => obstacle !== null && forget(), forget)
      return standing
    },
  }
}

const gone: Standing = {
  identity: null,
  obstacle: { kind: 'failed', reason: 'The sending domain was deleted before the email was sent.' },
}

/** One that had failed and is being checked anew may soon be verified again. */
function obstacleOf(name: string, status: 'pending' | 'failed'): Obstacle {
  const lost = `The sending domain "${name}" is not verified any more`
  if (status === 'failed') {
    return { kind: 'failed', reason: `${lost}: its DNS records were gone on several days before the email was sent.` }
  }
  const reason = `${lost}, and its DNS records are looked for: the email waits for them.`
  return { kind: 'deferred', reason, reply: null, host: null, unknown: false }
}
