import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

const algorithm = 'aes-256-gcm'
const ivLength = 12
const tagLength = 16
const keyLength = 32

/** Encrypts secrets, so that they cannot be read in a copy of the database. */
export type SecretBox = {
  /** Encrypts with AES-256-GCM: 12 bytes of nonce, 16 of tag, then the ciphertext. Source: NIST SP 800-38D. */
  seal(plaintext: string): Buffer
  /** Returns the text that was sealed. Throws when it was sealed with another key or altered. */
  open(sealed: Buffer): string
  /** A hash that differs between keys and does not reveal them. */
  readonly fingerprint: string
}

/** @param key 32 bytes. */
export function secretBox(key: Buffer): SecretBox {
  return {
    seal(plaintext) {
      const iv = randomBytes(ivLength)
      const cipher = createCipheriv(algorithm, key, iv, { authTagLength: tagLength })
      const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()])
      return Buffer.concat([iv, cipher.getAuthTag(), ciphertext])
    },
    open(sealed) {
      const iv = sealed.subarray(0, ivLength)
      const decipher = createDecipheriv(algorithm, key, iv, { authTagLength: tagLength })
      decipher.setAuthTag(sealed.subarray(ivLength, ivLength + tagLength))
      return Buffer.concat([decipher.update(sealed.subarray(ivLength + tagLength)), decipher.final()]).toString('utf8')
    },
    fingerprint: createHash('sha256').update('postern encryption key').update(key).digest('hex').slice(0, 16),
  }
}

/**
 * Returns a key of 32 bytes for one purpose. Neither `key` nor the keys of other purposes can be derived from it.
 *
 * Source: RFC 5869 (HKDF), with SHA-256 and no salt.
 */
export function deriveKey(key: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `postern ${purpose}`, keyLength))
}
