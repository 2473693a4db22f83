import type { ServerResponse } from 'node:http'
import { createKeyedSemaphore } from '../lib/semaphore.ts'
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

export function createLargeAnswers({
  atOnce = 4,
  patienceMs = 10_000,
  readWithinMs = 120_000,
}: LargeAnswersOptions = {}): LargeResponses {
  const turns = createKeyedSemaphore({ permits: atOnce, holdersPerKey: 1 })

  /** Waits for a turn of the account. Returns null when that takes too long, or the response is closed first. */
  async function turnOf({ accountId, res }: LargeRequest): Promise<(() => void) | null> {
    const givingUp = new AbortController()
    const giveUp = () => givingUp.abort()
    const patience = setTimeout(giveUp, patienceMs)
    res.once('close', giveUp)
    try {
      return await turns.acquire({ key: accountId }, givingUp.signal)
    } finally {
      clearTimeout(patience)
      res.off('close', giveUp)
    }
  }

  async function enter(request: LargeRequest, ended: Promise<void>): Promise<void> {
    const leave = request.res.closed ? null : await turnOf(request)
    if (leave === null) throw tooMany
    void Promise.all([closing(request.res, readWithinMs), ended]).then(leave)
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

/** Resolves when the response is closed, which it is after `readWithinMs` milliseconds at the latest. */
export async function closing(res: ServerResponse, readWithinMs: number): Promise<void> {
  if (res.closed) return
  const cutOff = setTimeout(() => res.destroy(), readWithinMs)
  await new Promise((resolve) => res.once('close', resolve))
  clearTimeout(cutOff)
}

const tooMany = new DomainError(
  'unavailable',
  'Only a few large responses are sent at a time, one to each account: read it before you request the next, or try again later.',
  { retryAfterSeconds: 10 },
)
