import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { createSemaphore } from '../lib/semaphore.ts'

/** A pair of keys for DKIM. */
export type DkimKeyPair = {
  /** As the `p=` of its DNS record has it. */
  publicKey: string
  privateKey: KeyObject
}

export type DkimKeys = { rsa: DkimKeyPair; ed25519: DkimKeyPair }

/** Makes keys for a domain of an account. */
export type MakeDkimKeys = (accountId: string) => Promise<DkimKeys>

const generate = promisify(generateKeyPair)

/** Of a SubjectPublicKeyInfo for Ed25519, what stands before the 32 bytes of the key: RFC 8410 §4. */
const ed25519PrefixLength = 12

async function makeDkimKeys(): Promise<DkimKeys> {
  const { privateKey } = await generate('rsa', { modulusLength: 2048 })
  return { rsa: pairOf(privateKey), ed25519: await makeEd25519Keys() }
}

/** Takes no time to speak of. */
export async function makeEd25519Keys(): Promise<DkimKeyPair> {
  const { privateKey } = await generate('ed25519')
  return pairOf(privateKey)
}

/** RFC 6376 §3.6.1 has the whole SubjectPublicKeyInfo of an RSA key, RFC 8463 §4.2 the bare key of Ed25519. */
export function pairOf(privateKey: KeyObject): DkimKeyPair {
  const info = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  const published = privateKey.asymmetricKeyType === 'ed25519' ? info.subarray(ed25519PrefixLength) : info
  return { publicKey: published.toString('base64'), privateKey }
}

/**
 * Answers a function that makes the keys of a domain: RSA with 2,048 bits, and Ed25519. They are made off
 * the main thread, and one pair after the other: an RSA key takes a processor some tenths of a second, and
 * name look-ups, files and signatures wait for the same few threads. Accounts take turns, so that who wants
 * many waits for them alone.
 *
 * @param make Makes one pair. For tests.
 */
export function createDkimKeyMaker(make: () => Promise<DkimKeys> = makeDkimKeys): MakeDkimKeys {
  const oneByOne = createSemaphore(1)
  /** When the last keys that an account waits for are made. */
  const last = new Map<string, Promise<unknown>>()

  async function makeInTurn(): Promise<DkimKeys> {
    const leave = await oneByOne.acquire()
    return make().finally(leave)
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
