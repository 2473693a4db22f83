import { mayHoldMore, type Threshold } from './dynamic-threshold.ts'
import { createRing, type Ring } from './round-robin-list.ts'

/** The fields of an account that decide its turns. */
export type TurnAccount = {
  /** Places that the account holds. */
  held: number
  /** The part of `held` that belongs to flows whose endpoints are not known to respond. */
  unanswered: number
  /** Starts left in its turn. */
  deficit: number
  /** Flows of the account that may start. */
  readonly ready: { readonly size: number }
  /** The part of `ready` whose endpoints are known to respond. */
  readonly readyAnswered: { readonly size: number }
  /**
   * `aside`: the account holds too many places to start another request. `aside_unanswered`: only flows of it may start
   * whose endpoints are not known to respond, and it or all accounts hold too many places for such flows.
   */
  state: 'no_work' | 'ready' | 'aside' | 'aside_unanswered'
}

/**
 * Decides which account starts next: deficit round robin (Shreedhar and Varghese, 1995) over the accounts that may
 * start. A delivery costs one, whatever its size, so a deficit is a number of starts. An account that holds too many
 * places is set aside until it may hold more, so that it costs no time meanwhile.
 */
export type AccountTurns<Account extends TurnAccount> = {
  /** Moves an account to the ring that fits its state. Call it after every change of the account. */
  place(account: Account): void
  /** Returns the account whose turn it is. Undefined: none may start. */
  current(): Account | undefined
  /** Returns true if the account may start a request of a flow whose endpoint is not known to respond. */
  mayStartUnanswered(account: Account): boolean
  /** Counts a start: the account takes a place. */
  take(account: Account): void
  /** Counts a freed place of the account. */
  release(account: Account): void
  /** Adds `by` to the places that the account holds for flows whose endpoints are not known to respond. */
  changeUnanswered(account: Account, by: number): void
  readonly taken: number
}

/** Starts of an account in one turn. */
export const quantum = 8

/**
 * Returns how many of the places flows may hold together whose endpoints are not known to respond: three quarters. So
 * however many endpoints hang, of one account or of many, there are places for those that respond.
 */
export function unansweredPlaces(places: number): number {
  return Math.ceil((places * 3) / 4)
}

export function createAccountTurns<Account extends TurnAccount>(threshold: Threshold): AccountTurns<Account> {
  const { places, alpha } = threshold
  const unansweredThreshold = { places: unansweredPlaces(places), alpha }
  const turns = createRing<Account>()
  const aside = createSetAside<Account>(({ held }) => held)
  const asideUnanswered = createSetAside<Account>(({ unanswered }) => unanswered)
  let taken = 0
  /** Places held by flows whose endpoints are not known to respond. */
  let unanswered = 0

  function mayStartUnanswered(account: Account): boolean {
    return mayHoldMore(unansweredThreshold, account.unanswered, unanswered)
  }

  function stateOf(account: Account): Account['state'] {
    const { ready, readyAnswered, held } = account
    if (ready.size === 0) return 'no_work'
    // While no place is free at all, `current` looks at no account, so setting aside would be wasted work.
    if (taken >= places) return 'ready'
    if (!mayHoldMore(threshold, held, taken)) return 'aside'
    return readyAnswered.size > 0 || mayStartUnanswered(account) ? 'ready' : 'aside_unanswered'
  }

  function place(account: Account): void {
    const before = account.state
    const state = stateOf(account)
    if (state === before) return
    turns.remove(account)
    if (before === 'aside') aside.remove(account)
    if (before === 'aside_unanswered') asideUnanswered.remove(account)
    account.state = state
    if (state === 'aside') aside.add(account)
    if (state === 'aside_unanswered') asideUnanswered.add(account)
    if (state === 'ready') {
      account.deficit = quantum
      turns.add(account)
    }
    // It may have been put back for a free place that it does not use.
    if (before === 'ready') takeBackUnanswered()
  }

  /** Puts accounts back that may hold more, now that one more place is free. */
  function takeBack(): void {
    const free = places - taken
    for (let held = Math.max(0, Math.floor(alpha * (free - 1))); held < alpha * free; held++) {
      for (let account = aside.first(held); account !== undefined; account = aside.first(held)) place(account)
    }
  }

  /**
   * Puts accounts back that may start a request of a flow whose endpoint is not known to respond: as many as there are
   * free places for such flows, those that hold fewest of them first.
   */
  function takeBackUnanswered(): void {
    const free = unansweredThreshold.places - unanswered
    let left = free
    for (let count = 0; left > 0 && asideUnanswered.size > 0 && count < alpha * free; count++) {
      for (let account = asideUnanswered.first(count); left > 0 && account !== undefined; ) {
        place(account)
        // It may hold too many places in all.
        if (account.state === 'ready') left -= 1
        account = asideUnanswered.first(count)
      }
    }
  }

  return {
    place,
    current() {
      if (taken >= places) return undefined
      for (let account = turns.first(); account !== undefined; account = turns.first()) {
        place(account)
        if (account.state !== 'ready') continue
        if (account.deficit >= 1) return account
        account.deficit += quantum
        turns.rotate()
      }
      return undefined
    },
    mayStartUnanswered,
    take(account) {
      account.deficit -= 1
      account.held += 1
      taken += 1
      place(account)
    },
    release(account) {
      if (account.state === 'aside') aside.remove(account)
      account.held -= 1
      taken -= 1
      if (account.state === 'aside') aside.add(account)
      takeBack()
      place(account)
    },
    changeUnanswered(account, by) {
      if (account.state === 'aside_unanswered') asideUnanswered.remove(account)
      account.unanswered += by
      unanswered += by
      if (account.state === 'aside_unanswered') asideUnanswered.add(account)
      if (by < 0) takeBackUnanswered()
      place(account)
    },
    get taken() {
      return taken
    },
  }
}

/** Accounts that are set aside, by a number of places that they hold. It must not change while an account is in it. */
type SetAside<Account> = {
  readonly size: number
  add(account: Account): void
  remove(account: Account): void
  /** Returns the first account that holds so many. */
  first(count: number): Account | undefined
}

function createSetAside<Account>(countOf: (account: Account) => number): SetAside<Account> {
  const rings: Ring<Account>[] = []
  let size = 0
  return {
    get size() {
      return size
    },
    add(account) {
      const count = countOf(account)
      rings[count] ??= createRing()
      rings[count].add(account)
      size += 1
    },
    remove(account) {
      rings[countOf(account)]?.remove(account)
      size -= 1
    },
    first: (count) => rings[count]?.first(),
  }
}
