import { createKeyedSemaphore } from '../lib/semaphore.ts'
import { DomainError } from '../shared/errors.ts'
import { callerOf } from './caller.ts'
import type { RouteInput } from './route-handler.ts'

export type TurnsOptions = {
  /** Turns at once, of all accounts together. Default: 2. */
  atOnce?: number
  /** Turns of one account at once. Default: 1. */
  ofAccount?: number
  /** Requests that wait. One account may take half of the places that are left. Default: 1,000. */
  waiting?: number
  /** Milliseconds that a request waits. Default: 10 s. */
  patienceMs?: number
  /** The error for a request that gets no turn. Default: the one for emails that are sent again. */
  refusal?: DomainError
}

/** Returns a route handler whose requests wait for their turn before they take a connection of the database. */
export type InTurns = <Input extends RouteInput, Answer>(
  handler: (input: Input) => Promise<Answer>,
) => (input: Input) => Promise<Answer>

/**
 * For requests that are short themselves and keep a connection of the database for long: one of each account, or a few,
 * run at a time, and a few of all accounts. Otherwise one account could keep all connections, and no other request would
 * be answered.
 *
 * Throws `unavailable` when a request has waited too long, or too many wait.
 */
export function createRequestTurns(options: TurnsOptions = {}): InTurns {
  const { atOnce = 2, ofAccount = 1, waiting = 1_000, patienceMs = 10_000, refusal = tooMany } = options
  const turns = createKeyedSemaphore({ permits: atOnce, holdersPerKey: ofAccount, waiting })

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
    if (leave === null) throw refusal
    try {
      return await handler(input)
    } finally {
      leave()
    }
  }
}

/**
 * For requests that render templates. With an `Idempotency-Key` they do so in the transaction that keeps the response:
 * those take turns, so that slow templates do not take all connections. The others hold none and go on at once.
 */
export function createRenderingTurns(
  atOnce: number,
): <Input extends RouteInput, Answer>(
  handler: (input: Input) => Promise<Answer>,
  renders?: (input: Input) => boolean,
) => (input: Input) => Promise<Answer> {
  const inTurns = createRequestTurns({ atOnce, ofAccount: Math.ceil(atOnce / 2), refusal: tooManyRender })
  return (handler, renders = () => true) => {
    const inTurn = inTurns(handler)
    return (input) =>
      input.req.get('idempotency-key') !== undefined && renders(input) ? inTurn(input) : handler(input)
  }
}

const tooManyRender = new DomainError(
  'unavailable',
  'Requests that render a template and have an Idempotency-Key take turns: send fewer at once, make the template faster, or try again.',
  { retryAfterSeconds: 10 },
)

const tooMany = new DomainError(
  'unavailable',
  'Emails are sent again one at a time for each account, and a few for all: wait for the answer before you send the next request, or try again.',
  { retryAfterSeconds: 10 },
)
