import { randomFillSync } from 'node:crypto'
import { fromUUID, fromUUIDBytes } from 'typeid-js'
import { type IdKind, idPrefixes, idSuffix } from '../../contract/ids.ts'

/** Of the base32 that identifiers are written in. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

const randomPool = new Uint8Array(8 * 512)
let poolOffset = randomPool.length

let lastMs = 0
let sequence = 0

/**
 * A new identifier, greater than every one this process made before, also within a millisecond and
 * after the clock was set back.
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
    // Seeded in the lower half, which leaves room to count up.
    sequence = ((random[0] as number) << 3) | ((random[1] as number) & 0x07)
  } else if (++sequence > 0xfff) {
    lastMs += 1
    sequence = 0
  }
  const bytes = new Uint8Array(16)
  setTime(bytes, lastMs)
  // Version 7, then the counter, then the variant and what is left of the randomness.
  bytes.set([0x70 | (sequence >> 8), sequence & 0xff], 6)
  bytes.set(random, 8)
  bytes[8] = 0x80 | ((random[0] as number) & 0x3f)
  return fromUUIDBytes(idPrefixes[kind], bytes)
}

/** Has every identifier that this process makes from now on be greater than `id`, whatever its clock says. */
export function continueAfter(id: string): void {
  const ms = timeOf(id).getTime()
  if (ms < lastMs) return
  lastMs = ms
  // Used up, so that the next identifier has the next millisecond.
  sequence = 0xfff
}

/**
 * When an identifier was made. Later than that where identifiers of its process were ahead of the clock. Throws when
 * `id` is none.
 *
 * Source: RFC 9562 §5.7 (48 bits of time).
 */
export function timeOf(id: string): Date {
  return new Date(Number.parseInt(uuidOf(id).slice(0, 13).replace('-', ''), 16))
}

/** The smallest identifier made at `at`: a bound for "since" in lists ordered by identifier. */
export function firstIdAt(kind: IdKind, at: Date): string {
  const bytes = new Uint8Array(16)
  setTime(bytes, Math.max(0, at.getTime()))
  return fromUUIDBytes(idPrefixes[kind], bytes)
}

/** How far the time in an identifier can be ahead of the time of creation: clocks that are set back. Milliseconds. */
const idLeadMs = 3_600_000

/** An identifier above those of all that was created before `at`: a bound for "until" in lists ordered by identifier. */
export function idAboveThoseBefore(kind: IdKind, at: Date): string {
  return firstIdAt(kind, new Date(at.getTime() + idLeadMs))
}

/** What each character of the base32 stands for, by its code. */
const digitOf = new Uint8Array(128)
for (const [digit, character] of [...alphabet].entries()) digitOf[character.charCodeAt(0)] = digit

/**
 * The UUID inside an identifier. Throws when `id` is none. Each delivery needs it twice, and typeid-js takes eight
 * times as long.
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

/** For one call of `uuidOf` at a time. */
const uuidBytes = Buffer.alloc(16)

/** The identifier with `uuid` inside: the inverse of `uuidOf`. */
export function idOfUuid(kind: IdKind, uuid: string): string {
  return fromUUID(uuid, idPrefixes[kind])
}

function setTime(bytes: Uint8Array, ms: number): void {
  const view = new DataView(bytes.buffer)
  view.setUint16(0, Math.floor(ms / 2 ** 32))
  view.setUint32(2, ms % 2 ** 32)
}
