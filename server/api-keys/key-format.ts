import { hash, randomBytes } from 'node:crypto'
import type { Mode } from '../../contract/mode.ts'

/** The name of the product at the start of every key. */
const product = 'postern'

const secretBytes = 32
/** Letters and digits after the prefix: 32 bytes need at most 43 in base 62. */
export const secretLength = 43
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const shape = new RegExp(`^${product}_(?:test|live)_[0-9A-Za-z]{${secretLength}}$`)

/** The mode of a key. `test`: emails are validated only. `live`: they are sent. */
export type KeyMode = Mode

/** Returns the start of all keys of a mode. */
export function keyPrefix(mode: KeyMode): string {
  return `${product}_${mode}_`
}

/** Returns a new key: the mode and 256 random bits in letters and digits, so that a double click selects all of it. */
export function newKey(mode: KeyMode): string {
  return keyPrefix(mode) + base62(randomBytes(secretBytes)).padStart(secretLength, '0')
}

/** Returns true when `text` has the form of a key. Other text needs no query. */
export function hasKeyShape(text: string): boolean {
  return shape.test(text)
}

/** Returns the SHA-256 of a key, which is stored instead of it. A key of 256 random bits needs no slow hash. */
export function hashOfKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** Returns the last four characters, which help people to tell keys apart. */
export function lastFourOf(key: string): string {
  return key.slice(-4)
}

function base62(bytes: Buffer): string {
  const base = BigInt(alphabet.length)
  let text = ''
  for (let rest = BigInt(`0x${bytes.toString('hex')}`); rest > 0n; rest /= base) {
    text = alphabet.charAt(Number(rest % base)) + text
  }
  return text
}
