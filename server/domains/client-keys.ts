import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { type DkimKeysInput, rsaBits } from '../../contract/domains.ts'
import { brokenRule } from '../shared/errors.ts'
import { type DkimKeyPair, pairOf } from './generate-keys.ts'
import { keyRecordName } from './records.ts'

/** A key pair with the selector of its record. */
export type SelectedKeys = DkimKeyPair & { selector: string }

/** The keys that a client provided. Null: none of that kind. */
export type OwnKeys = { rsa: SelectedKeys | null; ed25519: SelectedKeys | null }

type Kind = keyof OwnKeys

const signInThread = promisify(sign)

/** Most octets of a DNS name without the trailing dot: RFC 1035 §2.3.4. */
const maxNameLength = 253

/**
 * Reads the private keys of a request. Throws `rule_violation` for a key that cannot sign. The error never quotes the
 * key.
 *
 * @param domain The domain of the records of the keys.
 */
export async function readOwnKeys(given: DkimKeysInput | undefined, domain: string): Promise<OwnKeys> {
  const read = async (kind: Kind): Promise<SelectedKeys | null> => {
    const key = given?.[kind]
    if (key === undefined) return null
    const selector = key.selector.toLowerCase()
    const excess = keyRecordName(selector, domain).length - maxNameLength
    if (excess > 0) {
      throw brokenRule(`body.dkimKeys.${kind}.selector`, `must be at most ${selector.length - excess} characters here`)
    }
    return { selector, ...pairOf(await readPrivateKey(kind, key.privateKey)) }
  }
  const [rsa, ed25519] = await Promise.all([read('rsa'), read('ed25519')])
  if (rsa !== null && rsa.selector === ed25519?.selector) {
    throw brokenRule('body.dkimKeys.ed25519.selector', 'must differ from that of the RSA key')
  }
  return { rsa, ed25519 }
}

async function readPrivateKey(kind: Kind, pem: string): Promise<KeyObject> {
  const refuse = (message: string) => brokenRule(`body.dkimKeys.${kind}.privateKey`, message)
  const key = parsed(pem)
  if (key === null) throw refuse('must be a private key in PEM (PKCS #8 or PKCS #1) without a passphrase')
  if (key.asymmetricKeyType !== kind) {
    throw refuse(kind === 'rsa' ? 'must be an RSA key' : 'must be an Ed25519 key')
  }
  const { modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  if (kind === 'rsa' && (modulusLength < rsaBits.min || modulusLength > rsaBits.max)) {
    throw refuse(`must have ${rsaBits.min} to ${rsaBits.max} bits, but has ${modulusLength}`)
  }
  if (!(await isWhole(kind, key))) throw refuse('is damaged: what it signs does not verify with its public key')
  return key
}

function parsed(pem: string): KeyObject | null {
  try {
    return createPrivateKey({ key: pem, format: 'pem' })
  } catch {
    return null
  }
}

/** Returns true when the private part matches the public part, which parsing a key does not check. */
async function isWhole(kind: Kind, key: KeyObject): Promise<boolean> {
  const text = Buffer.from('postern')
  const algorithm = kind === 'rsa' ? 'sha256' : null
  try {
    return verify(algorithm, text, createPublicKey(key), await signInThread(algorithm, text, key))
  } catch {
    return false
  }
}
