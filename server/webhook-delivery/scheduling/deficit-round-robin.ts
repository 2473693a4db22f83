import { mayHoldMore, type Threshold } from './dynamic-threshold.ts'
import { createRing, type Ring } from './ring.ts'

/** What is known of an account here. */
export type TurnAccount = {
  /** Places that it holds. */
  held: number
  /** Starts left in its turn. */
  deficit: number
  /** Something of it may start, for all that is known of its flows. */
  readonly ready: { readonly size: number }
  /** `aside`: it holds too many places. */
  state: 'no_work' | 'ready' | 'aside'
}

/**
 * Which account starts next: deficit round robin (Shreedhar and Varghese, 1995) over those that may start. A delivery
 * costs one, whatever its size, so that a deficit is a number of starts. An account that holds too many places is set
 * aside until it may hold more, so that nobody looks at it meanwhile.
 */
export type AccountTurns<Account extends TurnAccount> = {
  /** Puts an account where it belongs, after something about it has changed. */
  place(account: Account): void
  /** The account whose turn it is. Undefined: none may start. */
  current(): Account | undefined
  /** An account starts one. */
  take(account: Account): void
  /** One of its places is free. */
  release(account: Account): void
  readonly taken: number
}

/** Starts of an account in its turn. */
export const quantum = 8

export function createAccountTurns<Account extends TurnAccount>(threshold: Threshold): AccountTurns<Account> {
  const { places, alpha } = threshold
  const turns = createRing<Account>()
  /** Accounts set aside, by the places they hold. */
  const aside: Ring<Account>[] = []
  let taken = 0

  function asideWith(held: number): Ring<Account> {
    aside[held] ??= createRing()
    return aside[held]
  }

  function stateOf({ ready, held }: Account): Account['state'] {
    if (ready.size === 0) return 'no_work'
    // While there is no place at all, nobody is looked at.
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

  /** One place more is free: takes back the accounts that this lets hold more. */
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
