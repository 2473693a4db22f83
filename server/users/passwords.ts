import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { passwordLength } from '../../contract/user.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'

/** 19 MiB, two passes, one lane. Source: OWASP Password Storage Cheat Sheet, Argon2id. */
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const
const tagLength = 32
const saltLength = 16
/** Hashes at once: each takes 19 MiB and one of the four threads of libuv, which file and DNS operations need too. */
const atOnce = 2
/** Requests that may wait for their hash: about two seconds. Beyond, they are refused. */
const maxWaiting = 100

const hashWith = promisify(argon2)

/** Hashes and checks passwords, a few at a time. */
export type Passwords = {
  /** Returns the hash of a password in the PHC string format. Throws `unavailable` when too many wait. */
  hash(password: string): Promise<string>
  /**
   * Returns true when `password` is the one of `stored`. Null: there is no user; this takes as long, so that the time
   * does not tell. Throws `unavailable` when too many wait.
   */
  verify(stored: string | null, password: string): Promise<boolean>
}

export function createPasswords(): Passwords {
  const permits = createSemaphore(atOnce)
  let waiting = 0

  async function derive(password: string, nonce: Buffer): Promise<Buffer> {
    if (waiting >= maxWaiting) {
      throw new DomainError('unavailable', 'Too many people are signing in just now: try again in a moment.')
    }
    waiting += 1
    try {
      const release = await permits.acquire()
      try {
        // The same characters may be typed in several ways. Source: NIST SP 800-63B §5.1.1.2.
        const message = Buffer.from(password.normalize('NFKC'))
        return await hashWith('argon2id', { message, nonce, ...cost, tagLength })
      } finally {
        release()
      }
    } finally {
      waiting -= 1
    }
  }

  return {
    async hash(password) {
      const salt = randomBytes(saltLength)
      const tag = await derive(password, salt)
      return `${prefix}${unpadded(salt)}$${unpadded(tag)}`
    },
    async verify(stored, password) {
      const [salt, tag] = stored === null ? [noSalt, noTag] : partsOf(stored)
      const given = await derive(password, salt)
      return timingSafeEqual(given, tag) && stored !== null
    },
  }
}

/** Throws `rule_violation` for a new password that must not be used. */
export function assertNewPassword(password: string, { email, path }: { email: string; path: string }): void {
  const { min, max } = passwordLength
  // Each half would be hashed as U+FFFD, so different passwords were one.
  if (!password.isWellFormed()) throw brokenRule(path, 'must not contain half of a surrogate pair')
  const { length } = [...password]
  if (length < min || length > max) throw brokenRule(path, `must have ${min} to ${max} characters`)
  if (password.trim().toLowerCase() === email.toLowerCase()) throw brokenRule(path, 'must not be the email address')
}

const prefix = `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$`
const noSalt = Buffer.alloc(saltLength)
const noTag = Buffer.alloc(tagLength)

/** Returns salt and tag of a stored hash. Throws when it is not one of ours. */
function partsOf(stored: string): [salt: Buffer, tag: Buffer] {
  const [salt, tag] = stored.startsWith(prefix) ? stored.slice(prefix.length).split('$') : []
  if (salt === undefined || tag === undefined) throw new Error('a stored password hash has another form')
  return [Buffer.from(salt, 'base64'), Buffer.from(tag, 'base64')]
}

/** Source: the PHC string format, which has base64 without padding. */
function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
