import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'

/** Tries without a delay. */
const freeTries = 5
const firstDelayMs = 1_000
const maxDelayMs = 15 * 60_000
/** Failures are forgotten after this time without another. */
const memoryMs = 60 * 60_000
const maxPairs = 100_000

/** One try to prove an identity. It counts as a failure until it has turned out to be none. */
export type Try = {
  /** The password is right. Forgets all failures. */
  succeeded(): void
  /** Nothing was learned, for example because another proof is missing. Does not count. */
  inconclusive(): void
}

/**
 * Slows guessing down: each failure for an email address from one client doubles the time until its next try. Counted
 * for the pair of both, so that no other client locks the owner of an address out. In this process.
 */
export type SignInDelays = {
  /** Begins a try. Throws `rate_limit_exceeded` when the last failure is too recent; that does not count. */
  begin(pair: { email: string; client: string }): Try
}

export function createSignInDelays({ clock }: { clock: Clock }): SignInDelays {
  type Entry = { failures: number; lastAt: number }
  const entries = new LRUCache<string, Entry>({ max: maxPairs })

  return {
    begin({ email, client }) {
      const name = `${client} ${email.toLowerCase()}`
      const now = clock.now().getTime()
      const known = entries.get(name)
      const entry = known !== undefined && now - known.lastAt < memoryMs ? known : { failures: 0, lastAt: now }
      const waitMs = entry.lastAt + delayAfter(entry.failures) - now
      if (waitMs > 0) throw tooMany(waitMs)
      // Counted before the password is checked: tries at once must not pass together.
      entry.failures += 1
      entry.lastAt = now
      entries.set(name, entry)
      return {
        succeeded: () => void entries.delete(name),
        inconclusive: () => {
          entry.failures -= 1
        },
      }
    },
  }
}

/** Milliseconds to wait after so many failures in a row. */
export function delayAfter(failures: number): number {
  return failures < freeTries ? 0 : Math.min(maxDelayMs, firstDelayMs * 2 ** (failures - freeTries))
}

/** Returns the error for a client that must wait. */
export function tooMany(waitMs: number): DomainError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new DomainError(
    'rate_limit_exceeded',
    `Too many failed tries: try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? 'second' : 'seconds'}.`,
    { retryAfterSeconds },
  )
}
