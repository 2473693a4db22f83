import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { SecretBox } from './secret-box.ts'

/** Seals a private key for the database: PKCS #8 in DER, in base64, encrypted. */
export function sealPrivateKey(box: SecretBox, key: KeyObject): Buffer {
  return box.seal(key.export({ format: 'der', type: 'pkcs8' }).toString('base64'))
}

/** Returns the key that `sealPrivateKey` sealed. Throws as `SecretBox.open` does. */
export function openPrivateKey(box: SecretBox, sealed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.from(box.open(sealed), 'base64'), format: 'der', type: 'pkcs8' })
}
