import { priorityOfTurn, secondOf } from './lanes.ts'

/**
 * Whose turn it is. Each account has so many turns in a second, and each of its webhooks half of those that its
 * others leave; what comes beyond them takes the turns of the seconds to come. So a flood never stands before what
 * is for other accounts, however many webhooks it is for, nor before what is for others of the same account. Turns
 * order what waits, and delay nothing: who is alone is served at once, however far ahead its turns are.
 *
 * While nothing waits, the seconds are those of the clock. Else one lasts until all that has turns in it has been
 * claimed, be that longer or shorter: who is not ahead comes before all that still waits.
 *
 * Source: Goyal, Vin, Cheng, Start-time Fair Queuing, 1996, with seconds for the virtual time.
 */
export type Turns = {
  /** The priority of the next fresh delivery of an account for a webhook. */
  next(accountId: string, webhook: { slow: boolean; lane: number }, now: Date): number
  /** Where deliveries of a webhook wait that give up their turns for as many in the seconds to come, in their order. */
  later(webhook: { slow: boolean; lane: number }, now: Date): () => number
  /** The latest second whose turns have come of what waits. Unix time. Null: nothing waits, as far as is known. */
  come(): number | null
  /** Says that the first of what waits has turns in this second: those before it are over. */
  reach(second: number, now: Date): void
  /** Forgets who is ahead: nothing waits any more, so nobody owes anybody a turn. */
  forget(): void
}

/** Deliveries of one account in one second. */
export const accountTurnsPerSecond = 128
/** Deliveries of one webhook in one second, where its account has no others. */
export const turnsPerSecond = accountTurnsPerSecond / 2
/**
 * How far ahead of the clock a webhook gets at most: one that is always fast shall not pay for that for ever. Where
 * something waits, it is as far ahead as it has caused. Seconds.
 */
const maxAhead = 3_600
/** What waits so far behind those that were reached is of a process that began anew with the clock. Seconds. */
const anewSeconds = 60

/** The turns of a webhook in the latest second in which it has any. */
type Latest = { second: number; turns: number }

/** The turns that an account has taken. */
type Account = {
  /** By the number of a webhook's lane. */
  latest: Map<number, Latest>
  /** Of all its webhooks, by second. */
  taken: Map<number, number>
}

export function createTurns(): Turns {
  const accounts = new Map<string, Account>()
  let entered = 0
  /** Null: nothing waits, as far as is known. */
  let reached: number | null = null

  function come(): number | null {
    return reached === null ? null : reached - 1
  }

  /** What is past needs no memory. */
  function enter(second: number): void {
    for (const [id, { latest, taken }] of accounts) {
      for (const [lane, own] of latest) if (own.second < second) latest.delete(lane)
      if (latest.size === 0) {
        accounts.delete(id)
        continue
      }
      for (let past = entered; past < second; past++) taken.delete(past)
    }
    entered = second
  }

  function accountOf(id: string): Account {
    const known = accounts.get(id)
    if (known !== undefined) return known
    const account: Account = { latest: new Map(), taken: new Map() }
    accounts.set(id, account)
    return account
  }

  function forget(): void {
    accounts.clear()
    reached = null
  }

  return {
    next(accountId, webhook, now) {
      const second = come() ?? secondOf(now)
      if (webhook.slow) {
        // It waits for itself alone, and so does what it had caused before.
        accounts.get(accountId)?.latest.delete(webhook.lane)
        return priorityOfTurn(webhook, second)
      }
      if (second !== entered) enter(second)
      const { latest, taken } = accountOf(accountId)
      let own = latest.get(webhook.lane)
      if (own === undefined || own.second < second) {
        own = { second, turns: 0 }
        latest.set(webhook.lane, own)
      }
      let all = taken.get(own.second) ?? 0
      const last = reached === null ? second + maxAhead : Number.POSITIVE_INFINITY
      while (own.turns >= (accountTurnsPerSecond - (all - own.turns)) / 2 && own.second < last) {
        own.second += 1
        own.turns = 0
        all = taken.get(own.second) ?? 0
      }
      own.turns += 1
      taken.set(own.second, all + 1)
      return priorityOfTurn(webhook, own.second)
    },
    later(webhook, now) {
      const first = (come() ?? secondOf(now)) + 1
      let given = 0
      return () => priorityOfTurn(webhook, first + Math.floor(given++ / turnsPerSecond))
    },
    come,
    reach(second, now) {
      if (reached !== null && second < reached - anewSeconds) forget()
      // Whoever is not ahead of the clock is not ahead of those that wait, whose seconds may be behind it.
      if (reached === null) enter(secondOf(now) + 1)
      reached = Math.max(reached ?? second, second)
    },
    forget,
  }
}
