import { hash, randomBytes } from 'node:crypto'
import type { Mode } from '../../contract/mode.ts'

/** The product's name as it stands in every key. */
const product = 'postern'

const secretBytes = 32
/** Letters and digits behind the prefix: what 32 bytes need at most in base 62. */
export const secretLength = 43
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const shape = new RegExp(`^${product}_(?:test|live)_[0-9A-Za-z]{${secretLength}}$`)

/** Whether emails are validated only, or sent to real people. */
export type KeyMode = Mode

/** How every key of a mode begins. */
export function keyPrefix(mode: KeyMode): string {
  return `${product}_${mode}_`
}

/** A new key: the mode and 256 random bits in letters and digits, which a double click selects whole. */
export function newKey(mode: KeyMode): string {
  return keyPrefix(mode) + base62(randomBytes(secretBytes)).padStart(secretLength, '0')
}

/** Whether `text` could be a key, so that what never was one needs no look into the database. */
export function hasKeyShape(text: string): boolean {
  return shape.test(text)
}

/** SHA-256: what is stored of a key. Its 256 random bits need no slow hash. */
export function hashOfKey(key: string): Buffer {
  return hash('sha256', key, 'buffer')
}

/** By what people tell keys apart. */
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
