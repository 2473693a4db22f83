import type { ServerResponse } from 'node:http'
import { DomainError } from '../errors.ts'

/*
 * An answer with a long text is in memory until its client has read it. So there are few at a time, one for each
 * account, and a client that does not read is cut off.
 */

export type LargeAnswersOptions = {
  /** Of all accounts. Default: 4. */
  atOnce?: number
  /** How long a request waits for its turn. Milliseconds. Default: 10 s. */
  patienceMs?: number
  /** How long a client may take to read one, from its turn on. Milliseconds. Default: 2 minutes. */
  readWithinMs?: number
}

export type LargeAnswers = {
  /**
   * Resolves when it is the turn of a request of the account, which lasts until its answer is written or its connection
   * is closed. Throws `unavailable` when that takes too long.
   */
  enter(accountId: string, res: ServerResponse): Promise<void>
}

type Waiting = { accountId: string; start: () => void }

export function createLargeAnswers({
  atOnce = 4,
  patienceMs = 10_000,
  readWithinMs = 120_000,
}: LargeAnswersOptions = {}): LargeAnswers {
  /** Those that have their turn. */
  const accounts = new Set<string>()
  const waiting = new Set<Waiting>()

  /** Those that waited longest first, but for accounts that have their turn. */
  function startNext(): void {
    for (const next of waiting) {
      if (accounts.size >= atOnce) return
      if (!accounts.has(next.accountId)) next.start()
    }
  }

  /** A turn that has begun, until the answer is closed. */
  function begin(accountId: string, res: ServerResponse): void {
    accounts.add(accountId)
    const cutOff = setTimeout(() => res.destroy(), readWithinMs)
    res.once('close', () => {
      clearTimeout(cutOff)
      accounts.delete(accountId)
      startNext()
    })
  }

  return {
    async enter(accountId, res) {
      if (res.closed) throw tooMany
      await new Promise<void>((resolve, reject) => {
        const entry = { accountId, start }
        const patience = setTimeout(giveUp, patienceMs)
        res.once('close', giveUp)
        waiting.add(entry)
        startNext()

        function stopWaiting(): void {
          clearTimeout(patience)
          res.off('close', giveUp)
          waiting.delete(entry)
        }
        function start(): void {
          stopWaiting()
          begin(accountId, res)
          resolve()
        }
        function giveUp(): void {
          stopWaiting()
          reject(tooMany)
        }
      })
    },
  }
}

const tooMany = new DomainError(
  'unavailable',
  'Answers with much content are written one at a time for each account, and a few for all: read one before you ask for the next, or try again.',
  { retryAfterSeconds: 10 },
)
