import { hash, randomBytes } from 'node:crypto'

/** Returns a secret of 256 random bits, in base64url: the value of a session cookie, or of a link that works once. */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

const shape = /^[\w-]{43}$/

/** Returns true when `text` has the form of a token. Other text needs no query. */
export function hasTokenShape(text: string): boolean {
  return shape.test(text)
}

/** Returns the SHA-256 of a token, which is stored instead of it. A token of 256 random bits needs no slow hash. */
export function hashOfToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
