import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { SecretBox } from './secret-box.ts'

/** A private key as it is kept in the database: PKCS #8 in DER, in base64, sealed. */
export function sealPrivateKey(box: SecretBox, key: KeyObject): Buffer {
  return box.seal(key.export({ format: 'der', type: 'pkcs8' }).toString('base64'))
}

/** The key that `sealPrivateKey` sealed. Throws as `SecretBox.open` does. */
export function openPrivateKey(box: SecretBox, sealed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.from(box.open(sealed), 'base64'), format: 'der', type: 'pkcs8' })
}
