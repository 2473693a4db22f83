import type { Lane } from '../shared/lanes.ts'
import { priorityOfTurn, secondOf } from './priority-ranges.ts'

/**
 * Start-time fair queuing (Goyal, Vin, Cheng, Start-time Fair Queuing, 1996), with clock seconds as the virtual time.
 * Each account has `turnsPerSecond` turns in a second; its further jobs take turns of later seconds. So a flood of one
 * account never goes before jobs of other accounts. Turns only order what waits: an account that is alone is served at
 * once, however far ahead its turns are.
 */
export type Turns = {
  /** Returns the priority of the next fresh job of an account. */
  next(accountId: string, now: Date): number
  /** Forgets which accounts are ahead. Call it when nothing waits any more, so that no account owes turns to others. */
  forget(): void
}

/** Turns of one account in a second. */
export const turnsPerSecond = 64
/**
 * Maximum time that an account's turns get ahead of the clock, so that a constantly fast account does not pay for it
 * forever. Seconds.
 */
const maxAhead = 3_600

/** The latest second in which an account has turns, and how many it has taken there. */
type Latest = { second: number; turns: number }

/** Creates the turns of a lane: none has taken one yet. */
export function createTurns(lane: Lane): Turns {
  const accounts = new Map<string, Latest>()
  let entered = 0

  /** Drops entries of past seconds: they do not affect later turns. */
  function enter(second: number): void {
    for (const [id, latest] of accounts) if (latest.second < second) accounts.delete(id)
    entered = second
  }

  /** Takes a turn of `key` and returns its second. */
  function take(key: string, now: Date): number {
    const second = secondOf(now)
    if (second !== entered) enter(second)
    const own = accounts.get(key) ?? { second, turns: 0 }
    accounts.set(key, own)
    if (own.turns >= turnsPerSecond && own.second < second + maxAhead) {
      own.second += 1
      own.turns = 0
    }
    own.turns += 1
    return own.second
  }

  return {
    next: (accountId, now) => priorityOfTurn(take(accountId, now), lane),
    forget: () => accounts.clear(),
  }
}
