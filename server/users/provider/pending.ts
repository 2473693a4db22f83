import { hash } from 'node:crypto'
import { z } from 'zod'
import { providerMinutes } from '../../../contract/identities.ts'
import type { Clock } from '../../lib/clock.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import type { ValidChallenge } from '../passkeys/challenges.ts'
import type { Expected } from './client.ts'

/** The state that a browser keeps while its user is at the provider, so that only its own answer is accepted. */
export type Pending = Expected & {
  /** Names it among those that were used. */
  used: ValidChallenge
}

/**
 * Seals the values that an answer of the provider is checked with into a cookie of the browser that asks. It writes no
 * row, so a flood of requests to sign in takes no space. The caller makes sure with `useChallenge` that each is used
 * once.
 */
export type PendingRequests = {
  /** @param binding What it is for: another binding does not open it. */
  seal(expected: Expected, binding: string): string
  /** Returns null for a text that was not sealed here with this binding, or has expired. */
  open(sealed: string | null, binding: string): Pending | null
}

const contents = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  binding: z.string(),
  expiresAt: z.number(),
})

/** @param secretBox With a key for this purpose alone. */
export function createPendingRequests({ secretBox, clock }: { secretBox: SecretBox; clock: Clock }): PendingRequests {
  function contentsOf(sealed: string): z.infer<typeof contents> | null {
    try {
      return contents.parse(JSON.parse(secretBox.open(Buffer.from(sealed, 'base64url'))))
    } catch {
      // Not sealed with this key, or altered.
      return null
    }
  }

  return {
    seal({ state, nonce, verifier }, binding) {
      const expiresAt = clock.now().getTime() + providerMinutes * 60_000
      return secretBox.seal(JSON.stringify({ state, nonce, verifier, binding, expiresAt })).toString('base64url')
    },
    open(sealed, wanted) {
      const found = sealed === null ? null : contentsOf(sealed)
      if (found === null) return null
      const { binding, expiresAt, ...expected } = found
      if (binding !== wanted || expiresAt <= clock.now().getTime()) return null
      const used = { hash: hash('sha256', `provider ${expected.state}`, 'buffer'), expiresAt: new Date(expiresAt) }
      return { ...expected, used }
    },
  }
}
