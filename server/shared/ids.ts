import { randomFillSync } from 'node:crypto'
import { fromUUID, fromUUIDBytes } from 'typeid-js'
import { type IdKind, idPrefixes, idSuffix } from '../../contract/ids.ts'

/** The base32 alphabet of identifiers. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

const randomPool = new Uint8Array(8 * 512)
let poolOffset = randomPool.length

let lastMs = 0
let sequence = 0

/**
 * Returns a new identifier, greater than all that this process made before, also within one millisecond and after the
 * clock was set back.
 *
 * Source: RFC 9562 §5.7 (UUIDv7), §6.2 method 1 (a 12-bit counter seeded at random).
 */
export function newId(kind: IdKind, at: Date): string {
  const nowMs = at.getTime()
  if (poolOffset === randomPool.length) {
    randomFillSync(randomPool)
    poolOffset = 0
  }
  const random = randomPool.subarray(poolOffset, poolOffset + 8)
  poolOffset += 8
  if (nowMs > lastMs) {
    lastMs = nowMs
    // Seeded in the lower half of its range, which leaves room to count up.
    sequence = ((random[0] as number) << 3) | ((random[1] as number) & 0x07)
  } else if (++sequence > 0xfff) {
    lastMs += 1
    sequence = 0
  }
  const bytes = new Uint8Array(16)
  setTime(bytes, lastMs)
  // Version 7, then the counter, then the variant and the remaining random bits.
  bytes.set([0x70 | (sequence >> 8), sequence & 0xff], 6)
  bytes.set(random, 8)
  bytes[8] = 0x80 | ((random[0] as number) & 0x3f)
  return fromUUIDBytes(idPrefixes[kind], bytes)
}

/** Makes all later identifiers of this process greater than `id`, whatever the clock says. */
export function continueAfter(id: string): void {
  const ms = timeOf(id).getTime()
  if (ms < lastMs) return
  lastMs = ms
  // The counter is at its end, so the next identifier takes the next millisecond.
  sequence = 0xfff
}

/** Forgets what was made before: the next identifier has the time of the clock. For tests that share a process. */
export function restartIds(): void {
  lastMs = 0
  sequence = 0
}

/**
 * Returns the time in an identifier. It is later than the creation when identifiers of the process were ahead of the
 * clock. Throws when `id` is not an identifier.
 *
 * Source: RFC 9562 §5.7 (48 bits of time).
 */
export function timeOf(id: string): Date {
  return new Date(Number.parseInt(uuidOf(id).slice(0, 13).replace('-', ''), 16))
}

/** Returns the smallest identifier with the time `at`: the "since" bound of lists ordered by identifier. */
export function firstIdAt(kind: IdKind, at: Date): string {
  const bytes = new Uint8Array(16)
  setTime(bytes, Math.max(0, at.getTime()))
  return fromUUIDBytes(idPrefixes[kind], bytes)
}

/** Milliseconds that an identifier may be ahead of its creation, because a clock was set back. */
const idLeadMs = 3_600_000

/** Returns an identifier above all that were created before `at`: the "until" bound of lists ordered by identifier. */
export function idAboveThoseBefore(kind: IdKind, at: Date): string {
  return firstIdAt(kind, new Date(at.getTime() + idLeadMs))
}

/** The value of each base32 character, by its character code. */
const digitOf = new Uint8Array(128)
for (const [digit, character] of [...alphabet].entries()) digitOf[character.charCodeAt(0)] = digit

/**
 * Returns the UUID inside an identifier. Throws when `id` is not an identifier. Own code, because each delivery needs
 * it twice and typeid-js takes eight times as long.
 *
 * Source: TypeID 0.3.0 (five bits a character, behind two bits of zero), RFC 9562 §4 (a UUID as text).
 */
export function uuidOf(id: string): string {
  const suffix = id.slice(id.lastIndexOf('_') + 1)
  if (!idSuffix.test(suffix)) throw new Error(`"${id}" is no identifier`)
  let bits = 0
  let bitCount = -2
  let byteCount = 0
  for (let index = 0; index < suffix.length; index++) {
    bits = ((bits << 5) | (digitOf[suffix.charCodeAt(index)] as number)) & 0xffff
    bitCount += 5
    if (bitCount < 8) continue
    bitCount -= 8
    uuidBytes[byteCount++] = bits >> bitCount
  }
  const hex = uuidBytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Scratch buffer of `uuidOf`, which is synchronous. */
const uuidBytes = Buffer.alloc(16)

/** Returns the identifier with `uuid` inside: the inverse of `uuidOf`. */
export function idOfUuid(kind: IdKind, uuid: string): string {
  return fromUUID(uuid, idPrefixes[kind])
}

function setTime(bytes: Uint8Array, ms: number): void {
  const view = new DataView(bytes.buffer)
  view.setUint16(0, Math.floor(ms / 2 ** 32))
  view.setUint32(2, ms % 2 ** 32)
}
