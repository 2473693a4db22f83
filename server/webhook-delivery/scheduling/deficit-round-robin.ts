import { mayHoldMore, type Threshold } from './dynamic-threshold.ts'
import { createRing, type Ring } from './round-robin-list.ts'

/** The fields of an account that decide its turns. */
export type TurnAccount = {
  /** Places that the account holds. */
  held: number
  /** Starts left in its turn. */
  deficit: number
  /** Flows of the account that may start. */
  readonly ready: { readonly size: number }
  /** `aside`: the account holds too many places to start another request. */
  state: 'no_work' | 'ready' | 'aside'
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
  /** Counts a start: the account takes a place. */
  take(account: Account): void
  /** Counts a freed place of the account. */
  release(account: Account): void
  readonly taken: number
}

/** Starts of an account in one turn. */
export const quantum = 8

export function createAccountTurns<Account extends TurnAccount>(threshold: Threshold): AccountTurns<Account> {
  const { places, alpha } = threshold
  const turns = createRing<Account>()
  /** Accounts set aside; the index is the number of places that they hold. */
  const aside: Ring<Account>[] = []
  let taken = 0

  function asideWith(held: number): Ring<Account> {
    aside[held] ??= createRing()
    return aside[held]
  }

  function stateOf({ ready, held }: Account): Account['state'] {
    if (ready.size === 0) return 'no_work'
    // While no place is free at all, `current` looks at no account, so setting aside would be wasted work.
    return taken >= places || mayHoldMore(threshold, held, taken) ? 'ready' : 'aside'
  }

  function place(account: Account): void {
    const state = stateOf(account)
    if (state === account.state) return
    turns.remove(account)
    if (account.state === 'aside') asideWith(account.held).remove(account)
    account.state = state
    if (state === 'aside') asideWith(account.held).add(account)
    if (state === 'ready') {
      account.deficit = quantum
      turns.add(account)
    }
  }

  /** Puts accounts back that may hold more, now that one more place is free. */
  function takeBack(): void {
    const free = places - taken
    for (let held = Math.max(0, Math.floor(alpha * (free - 1))); held < alpha * free; held++) {
      const ring = aside[held]
      for (let account = ring?.first(); account !== undefined; account = ring?.first()) place(account)
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
    take(account) {
      account.deficit -= 1
      account.held += 1
      taken += 1
      place(account)
    },
    release(account) {
      if (account.state === 'aside') asideWith(account.held).remove(account)
      account.held -= 1
      taken -= 1
      if (account.state === 'aside') asideWith(account.held).add(account)
      takeBack()
      place(account)
    },
    get taken() {
      return taken
    },
  }
}
