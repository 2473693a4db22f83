import { priorityOfTurn, secondOf } from './lanes.ts'

/**
 * Whose turn it is. Each webhook has so many turns in a second; what comes for it beyond them takes the
 * turns of the seconds to come, so that a flood for one never stands before what is for others. Turns
 * order what waits, and delay nothing: who is alone is served at once, however far ahead its turns are.
 *
 * Source: Goyal, Vin, Cheng, Start-time Fair Queuing, 1996, with seconds for the virtual time.
 */
export type Turns = {
  /** The priority of the next fresh delivery of a webhook. */
  next(webhook: { slow: boolean; lane: number }, now: Date): number
  /** Forgets who is ahead: nothing waits any more, so nobody owes anybody a turn. */
  forget(): void
}

/** Deliveries of one webhook in one second. */
export const turnsPerSecond = 64
/** How far ahead a webhook gets at most. One that is always fast shall not pay for that for ever. Seconds. */
const maxAhead = 3_600

/** Where deliveries of a webhook wait that give up their turns for as many in the seconds to come, in their order. */
export function laterTurns(webhook: { slow: boolean; lane: number }, now: Date): () => number {
  let given = 0
  return () => priorityOfTurn(webhook, secondOf(now) + 1 + Math.floor(given++ / turnsPerSecond))
}

type Taken = { second: number; turns: number }

export function createTurns(): Turns {
  /** The latest turns of each webhook, by the number of its lane. */
  const latest = new Map<number, Taken>()
  let current = 0

  /** Those who are not ahead need no memory. */
  function enter(second: number): void {
    current = second
    for (const [lane, taken] of latest) if (taken.second < second) latest.delete(lane)
  }

  return {
    next(webhook, now) {
      const second = secondOf(now)
      if (second !== current) enter(second)
      const taken = latest.get(webhook.lane)
      if (taken === undefined || taken.second < second) {
        latest.set(webhook.lane, { second, turns: 1 })
        return priorityOfTurn(webhook, second)
      }
      taken.turns += 1
      if (taken.turns > turnsPerSecond && taken.second < second + maxAhead) {
        taken.second += 1
        taken.turns = 1
      }
      return priorityOfTurn(webhook, taken.second)
    },
    forget: () => latest.clear(),
  }
}
