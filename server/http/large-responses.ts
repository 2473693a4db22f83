import type { ServerResponse } from 'node:http'
import { DomainError } from '../shared/errors.ts'

/*
 * A response with a long text stays in memory until the client has read it. So there are only a few at a time, one for
 * each account, and the connection of a client that reads too slowly is closed.
 */

export type LargeAnswersOptions = {
  /** Large responses at once, of all accounts together. Default: 4. */
  atOnce?: number
  /** Milliseconds that a request waits for its turn. Default: 10 s. */
  patienceMs?: number
  /** Milliseconds from the start of its turn in which a client must read the response. Default: 2 minutes. */
  readWithinMs?: number
}

export type LargeResponses = {
  /**
   * Calls `work` with a function that waits for the turn of this request, and throws `unavailable` when that takes too
   * long. A turn lasts until the work has ended and the response is written or its connection closed.
   */
  during<T>(request: LargeRequest, work: (enter: () => Promise<void>) => Promise<T>): Promise<T>
}

type LargeRequest = { accountId: string; res: ServerResponse }

type QueuedResponse = { accountId: string; start: () => void }

export function createLargeAnswers({
  atOnce = 4,
  patienceMs = 10_000,
  readWithinMs = 120_000,
}: LargeAnswersOptions = {}): LargeResponses {
  /** Accounts with a turn under way. */
  const accounts = new Set<string>()
  const waiting = new Set<QueuedResponse>()

  /** Starts waiting requests in FIFO order, skipping accounts that already have a turn. */
  function startNext(): void {
    for (const next of waiting) {
      if (accounts.size >= atOnce) return
      if (!accounts.has(next.accountId)) next.start()
    }
  }

  /** Holds the turn until the response is closed and `ended` resolves. */
  async function take({ accountId, res }: LargeRequest, ended: Promise<void>): Promise<void> {
    accounts.add(accountId)
    const cutOff = setTimeout(() => res.destroy(), readWithinMs)
    await new Promise((resolve) => res.once('close', resolve))
    clearTimeout(cutOff)
    await ended
    accounts.delete(accountId)
    startNext()
  }

  function enter(request: LargeRequest, ended: Promise<void>): Promise<void> {
    const { accountId, res } = request
    if (res.closed) return Promise.reject(tooMany)
    return new Promise((resolve, reject) => {
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
        void take(request, ended)
        resolve()
      }
      function giveUp(): void {
        stopWaiting()
        reject(tooMany)
      }
    })
  }

  return {
    async during(request, work) {
      const { promise: ended, resolve: end } = Promise.withResolvers<void>()
      try {
        return await work(() => enter(request, ended))
      } finally {
        end()
      }
    },
  }
}

const tooMany = new DomainError(
  'unavailable',
  'Answers with much content are written one at a time for each account, and a few for all: read one before you ask for the next, or try again.',
  { retryAfterSeconds: 10 },
)
