import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { createSemaphore } from '../lib/semaphore.ts'

/** A key pair for DKIM. */
export type DkimKeyPair = {
  /** The value of `p=` in its DNS record. */
  publicKey: string
  privateKey: KeyObject
}

export type DkimKeys = { rsa: DkimKeyPair; ed25519: DkimKeyPair }

/** Makes keys for a domain of an account. */
export type MakeDkimKeys = (accountId: string) => Promise<DkimKeys>

const generate = promisify(generateKeyPair)

/** Bytes before the 32-byte key in a SubjectPublicKeyInfo for Ed25519: RFC 8410 §4. */
const ed25519PrefixLength = 12

async function makeDkimKeys(): Promise<DkimKeys> {
  const { privateKey } = await generate('rsa', { modulusLength: 2048 })
  return { rsa: pairOf(privateKey), ed25519: await makeEd25519Keys() }
}

/** Makes an Ed25519 key pair, which is fast. */
export async function makeEd25519Keys(): Promise<DkimKeyPair> {
  const { privateKey } = await generate('ed25519')
  return pairOf(privateKey)
}

/**
 * Returns the key pair of a private key. The DNS record has the whole SubjectPublicKeyInfo of an RSA key (RFC 6376
 * §3.6.1), but only the raw bytes of an Ed25519 key (RFC 8463 §4.2).
 */
export function pairOf(privateKey: KeyObject): DkimKeyPair {
  const info = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  const published = privateKey.asymmetricKeyType === 'ed25519' ? info.subarray(ed25519PrefixLength) : info
  return { publicKey: published.toString('base64'), privateKey }
}

/**
 * Returns a function that makes the keys of a domain: RSA with 2,048 bits, and Ed25519. It works outside the main
 * thread on one domain at a time: an RSA key takes some tenths of a second of CPU time, and DNS lookups, files and
 * signatures share the same small thread pool. Each account has at most one request in the queue, so an account that
 * makes many keys does not delay others.
 *
 * @param make Makes the keys of one domain. For tests.
 */
export function createDkimKeyMaker(make: () => Promise<DkimKeys> = makeDkimKeys): MakeDkimKeys {
  const oneByOne = createSemaphore(1)
  /** For each account, the end of its last request. */
  const last = new Map<string, Promise<unknown>>()

  async function makeInTurn(): Promise<DkimKeys> {
    const release = await oneByOne.acquire()
    return make().finally(release)
  }

  return async (accountId) => {
    const keys = (last.get(accountId) ?? Promise.resolve()).then(makeInTurn)
    const made = keys.catch(() => undefined)
    last.set(accountId, made)
    try {
      return await keys
    } finally {
      if (last.get(accountId) === made) last.delete(accountId)
    }
  }
}
