import { priorityOfTurn, secondOf } from './priority-ranges.ts'

/**
 * Whose turn it is. Each account has so many turns in a second; what comes beyond them takes the turns of the seconds to
 * come. So a flood never stands before what is of other accounts. Turns order what waits, and delay nothing: who is
 * alone is served at once, however far ahead its turns are.
 *
 * Source: Goyal, Vin, Cheng, Start-time Fair Queuing, 1996, with the seconds of the clock for the virtual time.
 */
export type Turns = {
  /** The priority of the next fresh job of an account. */
  next(accountId: string, now: Date): number
  /** Forgets who is ahead: nothing waits any more, so nobody owes anybody a turn. */
  forget(): void
}

/** Of one account. */
export const turnsPerSecond = 64
/** How far ahead of the clock an account gets at most: one that is always fast shall not pay for that for ever. Seconds. */
const maxAhead = 3_600

/** The turns of an account in the latest second in which it has any. */
type Latest = { second: number; turns: number }

export function createTurns(): Turns {
  const accounts = new Map<string, Latest>()
  let entered = 0

  /** What is past needs no memory. */
  function enter(second: number): void {
    for (const [id, latest] of accounts) if (latest.second < second) accounts.delete(id)
    entered = second
  }

  return {
    next(accountId, now) {
      const second = secondOf(now)
      if (second !== entered) enter(second)
      const own = accounts.get(accountId) ?? { second, turns: 0 }
      accounts.set(accountId, own)
      if (own.turns >= turnsPerSecond && own.second < second + maxAhead) {
        own.second += 1
        own.turns = 0
      }
      own.turns += 1
      return priorityOfTurn(own.second)
    },
    forget: () => accounts.clear(),
  }
}
