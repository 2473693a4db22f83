import { createHmac, hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { recoveryCodeCount } from '../../contract/user.ts'

/*
 * One-time passwords by time, as all authenticator apps make them: RFC 6238 with SHA-1, 30 seconds and 6 digits.
 */

const stepMs = 30_000
const digits = 6
/** Steps before and after the present one that are accepted, for clocks that differ. Source: RFC 6238 §5.2. */
const tolerance = 1
/** Bytes of a secret: as long as the hash. Source: RFC 4226 §4, R6. */
const secretBytes = 20
const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns a new secret in base32 without padding. Source: RFC 4648 §6. */
export function newTotpSecret(): string {
  let bits = 0
  let held = 0
  let text = ''
  for (const byte of randomBytes(secretBytes)) {
    bits = ((bits << 8) | byte) & 0xfff
    for (held += 8; held >= 5; held -= 5) text += base32.charAt((bits >> (held - 5)) & 31)
  }
  return text
}

/** Returns the URI that authenticator apps read from a QR code. */
export function totpUri({ secret, email, issuer }: { secret: string; email: string; issuer: string }): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(email)}`
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}`
}

/** Returns the code of a time step. Source: RFC 4226 §5.3, RFC 6238 §4.2. */
export function totpCode(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', bytesOf(secret)).update(counter).digest()
  const offset = (mac[mac.length - 1] as number) & 0xf
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

/** Returns the number of the time step of `at`. */
export function stepAt(at: Date): number {
  return Math.floor(at.getTime() / stepMs)
}

/**
 * Returns the time step that `code` is of, or null when it is of none that counts at `at`. Steps up to `lastStep`,
 * whose code was used already, do not count. All candidates are compared, each in constant time.
 */
export function matchingStep(
  secret: string,
  { code, at, lastStep }: { code: string; at: Date; lastStep: number | null },
): number | null {
  const given = Buffer.from(code.replaceAll(/[ -]/g, ''))
  const now = stepAt(at)
  let found: number | null = null
  for (let step = now - tolerance; step <= now + tolerance; step++) {
    const expected = Buffer.from(totpCode(secret, step))
    const isEqual = given.length === expected.length && timingSafeEqual(given, expected)
    if (isEqual && (lastStep === null || step > lastStep)) found ??= step
  }
  return found
}

/** Letters and digits that are not taken for each other. */
const recoveryAlphabet = 'abcdefghjkmnpqrstuvwxyz23456789'
const recoveryLength = 16

/** Returns new recovery codes, each with 79 random bits, such as `k3m7-x2pq-9rtv-w5zn`. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodeCount }, () =>
    Array.from({ length: recoveryLength }, (_, index) => {
      const letter = recoveryAlphabet.charAt(randomInt(recoveryAlphabet.length))
      return index > 0 && index % 4 === 0 ? `-${letter}` : letter
    }).join(''),
  )
}

/** Returns the hash of a recovery code as it was typed, or null when the text has not the form of one. */
export function hashOfRecoveryCode(text: string): Buffer | null {
  const code = text.toLowerCase().replaceAll(/[ -]/g, '')
  return code.length === recoveryLength ? hash('sha256', code, 'buffer') : null
}

function bytesOf(secret: string): Buffer {
  let bits = 0
  let held = 0
  const bytes: number[] = []
  for (const letter of secret) {
    bits = ((bits << 5) | base32.indexOf(letter)) & 0xfff
    held += 5
    if (held < 8) continue
    held -= 8
    bytes.push((bits >> held) & 0xff)
  }
  return Buffer.from(bytes)
}
