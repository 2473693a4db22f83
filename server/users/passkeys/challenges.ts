import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'
import { passkeyMinutes } from '../../../contract/passkeys.ts'
import type { Clock } from '../../lib/clock.ts'

/** A challenge that was made here and has not expired. */
export type ValidChallenge = {
  /** Names it among those that were used. */
  hash: Buffer
  expiresAt: Date
}

/**
 * Makes and checks challenges. They are signed and not stored: a request to sign in writes no row, so a flood of them
 * takes no space. The caller makes sure with `useChallenge` that each is used once.
 */
export type Challenges = {
  /**
   * Returns a new challenge, in base64url.
   *
   * @param binding What it is for: another binding does not accept it.
   */
  make(binding: string): string
  /** Returns null for a challenge that was not made here with this binding, or has expired. */
  check(challenge: string, binding: string): ValidChallenge | null
}

const lifeMs = passkeyMinutes * 60_000
const randomLength = 16
const timeLength = 6
const headLength = randomLength + timeLength
const macLength = 32

/** @param key 32 bytes, for this purpose alone. */
export function createChallenges({ key, clock }: { key: Buffer; clock: Clock }): Challenges {
  const macOf = (head: Buffer, binding: string) => createHmac('sha256', key).update(head).update(binding).digest()

  return {
    make(binding) {
      const head = Buffer.alloc(headLength)
      randomBytes(randomLength).copy(head)
      head.writeUIntBE(clock.now().getTime() + lifeMs, randomLength, timeLength)
      return Buffer.concat([head, macOf(head, binding)]).toString('base64url')
    },
    check(challenge, binding) {
      const bytes = Buffer.from(challenge, 'base64url')
      // Another text that decodes to the same bytes is not the challenge: only the canonical one is accepted.
      if (bytes.length !== headLength + macLength || bytes.toString('base64url') !== challenge) return null
      const head = bytes.subarray(0, headLength)
      if (!timingSafeEqual(bytes.subarray(headLength), macOf(head, binding))) return null
      const expiresAt = new Date(head.readUIntBE(randomLength, timeLength))
      return expiresAt <= clock.now() ? null : { hash: hash('sha256', bytes, 'buffer'), expiresAt }
    },
  }
}
