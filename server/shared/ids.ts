import { randomFillSync } from 'node:crypto'
import { type IdKind, idPrefixes, idSuffix } from '../../contract/ids.ts'

/** The base32 alphabet of identifiers. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

const randomPool = new Uint8Array(8 * 512)
let poolOffset = randomPool.length

/** Scratch buffer of a UUID, for the functions of this file, which are synchronous. */
const uuidBytes = Buffer.alloc(16)

/** The time and the counter of the last identifier. */
type Sequence = { lastMs: number; counter: number }

const objects: Sequence = { lastMs: 0, counter: 0 }
const requests: Sequence = { lastMs: 0, counter: 0 }

/**
 * Returns a new identifier, greater than all that this process made before, also within one millisecond and after the
 * clock was set back.
 */
export function newId(kind: IdKind, at: Date): string {
  return nextId(kind, at.getTime(), objects)
}

/** Milliseconds that the identifier of a request may be ahead of the clock. Its time is shown as that of the request. */
const requestLeadMs = 10_000

/** Returns a new identifier of a request, greater than those before, unless the clock was set back by over 10 s. */
export function newRequestId(): string {
  const nowMs = Date.now()
  if (nowMs < requests.lastMs - requestLeadMs) requests.lastMs = 0
  return nextId('request', nowMs, requests)
}

/** Source: RFC 9562 §5.7 (UUIDv7), §6.2 method 1 (a 12-bit counter seeded at random). */
function nextId(kind: IdKind, nowMs: number, sequence: Sequence): string {
  if (poolOffset === randomPool.length) {
    randomFillSync(randomPool)
    poolOffset = 0
  }
  const first = randomPool[poolOffset] as number
  if (nowMs > sequence.lastMs) {
    sequence.lastMs = nowMs
    // Seeded in the lower half of its range, which leaves room to count up.
    sequence.counter = (first << 3) | ((randomPool[poolOffset + 1] as number) & 0x07)
  } else if (++sequence.counter > 0xfff) {
    sequence.lastMs += 1
    sequence.counter = 0
  }
  uuidBytes.writeUIntBE(sequence.lastMs, 0, 6)
  // Version 7, then the counter, then the variant and the remaining random bits.
  uuidBytes.writeUInt16BE(0x7000 | sequence.counter, 6)
  for (let index = 8; index < 16; index++) uuidBytes[index] = randomPool[poolOffset++] as number
  uuidBytes[8] = 0x80 | (first & 0x3f)
  return idOfBytes(kind)
}

/** Makes all later identifiers of this process greater than `id`, whatever the clock says. */
export function continueAfter(id: string): void {
  const ms = timeOf(id).getTime()
  if (ms < objects.lastMs) return
  objects.lastMs = ms
  // The counter is at its end, so the next identifier takes the next millisecond.
  objects.counter = 0xfff
}

/** Forgets what was made before: the next identifier has the time of the clock. For tests that share a process. */
export function restartIds(): void {
  objects.lastMs = 0
  objects.counter = 0
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
  uuidBytes.fill(0)
  uuidBytes.writeUIntBE(Math.max(0, at.getTime()), 0, 6)
  return idOfBytes(kind)
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
 * Returns the UUID inside an identifier. Throws when `id` is not an identifier. Own code here and in `idOfBytes`,
 * because each delivery needs them several times and typeid-js takes up to eight times as long.
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

/** Returns the identifier with `uuid` inside: the inverse of `uuidOf`. Throws when `uuid` is none. */
export function idOfUuid(kind: IdKind, uuid: string): string {
  const hex = uuid.replaceAll('-', '')
  if (hex.length !== 32 || uuidBytes.write(hex, 'hex') !== 16) throw new Error(`"${uuid}" is no UUID`)
  return idOfBytes(kind)
}

const characterCodes = Buffer.from(alphabet)
/** Scratch buffer of `idOfBytes`. */
const suffixBytes = Buffer.alloc(26)

/** Returns the identifier with the UUID in `uuidBytes`. */
function idOfBytes(kind: IdKind): string {
  let bits = 0
  let bitCount = 2
  let characterCount = 0
  for (let index = 0; index < uuidBytes.length; index++) {
    bits = ((bits << 8) | (uuidBytes[index] as number)) & 0xffff
    bitCount += 8
    for (; bitCount >= 5; bitCount -= 5) {
      suffixBytes[characterCount++] = characterCodes[(bits >> (bitCount - 5)) & 0x1f] as number
    }
  }
  return `${idPrefixes[kind]}_${suffixBytes.toString('latin1')}`
}
