import { createHash } from 'node:crypto'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { countTry, deleteFailures, deleteOldFailures, findFailures, uncountTry } from './sign-in-failure-queries.ts'

/** Tries without a delay. */
export const freeTries = 5
const firstDelayMs = 1_000
const maxDelayMs = 15 * 60_000
/** Failures are forgotten after this time without another. */
const memoryMs = 60 * 60_000
/** Pairs that are kept. Those beyond are the ones whose last failure is the longest ago. */
export const maxPairs = 100_000
/** Tries in this process after which the pairs beyond are deleted. */
const triesPerPrune = 1_000

/** One try to prove an identity. It counts as a failure until it has turned out to be none. */
export type Try = {
  /** The password is right. Forgets all failures. */
  succeeded(): Promise<void>
  /** Nothing was learned, for example because another proof is missing. Does not count. */
  inconclusive(): Promise<void>
}

/**
 * Slows guessing down: each failure for an email address from one client doubles the time until its next try. Counted
 * for the pair of both, so that no other client locks the owner of an address out. Counted in the database, for all
 * processes together.
 */
export type SignInDelays = {
  /**
   * Begins a try. Throws `rate_limit_exceeded` when the last failure is too recent; that does not count. `db` must not
   * be a transaction that is then rolled back.
   */
  begin(db: Db, pair: { email: string; client: string }): Promise<Try>
}

export function createSignInDelays({ clock }: { clock: Clock }): SignInDelays {
  let tries = 0

  return {
    async begin(db, { email, client }) {
      tries += 1
      if (tries % triesPerPrune === 0) await deleteOldSignInFailures({ db, clock })
      const pairHash = createHash('sha256').update(`${client} ${email.toLowerCase()}`).digest()
      const now = clock.now()
      // Counted before the password is checked: tries at once must not pass together.
      if (!(await countTry(db, { pairHash, now, since: forgottenAt(now), delaysMs }))) {
        const found = await findFailures(db, pairHash)
        throw tooMany(found === undefined ? 0 : found.lastAt.getTime() + delayAfter(found.failures) - now.getTime())
      }
      return {
        succeeded: () => deleteFailures(db, pairHash),
        inconclusive: () => uncountTry(db, pairHash),
      }
    },
  }
}

/** Deletes failures that are forgotten, and those of more than `maxPairs` pairs. */
export async function deleteOldSignInFailures({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  await deleteOldFailures(db, { since: forgottenAt(clock.now()), kept: maxPairs })
}

function forgottenAt(now: Date): Date {
  return new Date(now.getTime() - memoryMs)
}

/** Milliseconds to wait after so many failures in a row. */
export function delayAfter(failures: number): number {
  return failures < freeTries ? 0 : Math.min(maxDelayMs, firstDelayMs * 2 ** (failures - freeTries))
}

/** The delay after each number of failures, up to the first with the longest delay. */
const delaysMs = Array.from(
  { length: freeTries + Math.ceil(Math.log2(maxDelayMs / firstDelayMs)) + 1 },
  (_, failures) => delayAfter(failures),
)

/** Returns the error for a client that must wait. */
export function tooMany(waitMs: number): DomainError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new DomainError(
    'rate_limit_exceeded',
    `Too many failed tries: try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? 'second' : 'seconds'}.`,
    { retryAfterSeconds },
  )
}
