import { createKeyedSemaphore } from '../lib/semaphore.ts'
import { DomainError } from '../shared/errors.ts'
import { callerOf } from './caller.ts'
import type { RouteInput } from './route-handler.ts'

export type TurnsOptions = {
  /** Turns at once, of all accounts together. Default: 2. */
  atOnce?: number
  /** Requests that wait. One account may take half of the places that are left. Default: 1,000. */
  waiting?: number
  /** Milliseconds that a request waits. Default: 10 s. */
  patienceMs?: number
}

/** Returns a route handler whose requests wait for their turn before they take a connection of the database. */
export type InTurns = <Input extends RouteInput, Answer>(
  handler: (input: Input) => Promise<Answer>,
) => (input: Input) => Promise<Answer>

/**
 * For requests that are short themselves and make the database work for long: one of each account runs at a time, and a
 * few of all accounts. Otherwise one account could keep all connections, and no other request would be answered.
 *
 * Throws `unavailable` when a request has waited too long, or too many wait.
 */
export function createTurns({ atOnce = 2, waiting = 1_000, patienceMs = 10_000 }: TurnsOptions = {}): InTurns {
  const turns = createKeyedSemaphore({ permits: atOnce, holdersPerKey: 1, waiting })

  /** Returns null when that takes too long, or the client disconnects. */
  async function turnOf({ req, res }: RouteInput): Promise<(() => void) | null> {
    const givingUp = new AbortController()
    const giveUp = () => givingUp.abort()
    if (res.closed) giveUp()
    const patience = setTimeout(giveUp, patienceMs)
    res.once('close', giveUp)
    try {
      return await turns.acquire({ key: callerOf(req).accountId }, givingUp.signal)
    } finally {
      clearTimeout(patience)
      res.off('close', giveUp)
    }
  }

  return (handler) => async (input) => {
    const leave = await turnOf(input)
    if (leave === null) throw tooMany
    try {
      return await handler(input)
    } finally {
      leave()
    }
  }
}

const tooMany = new DomainError(
  'unavailable',
  'Emails are sent again one at a time for each account, and a few for all: wait for the answer before you send the next request, or try again.',
  { retryAfterSeconds: 10 },
)
