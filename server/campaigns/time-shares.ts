/**
 * Time that a turn may take without being counted: several batches of usual content fit into it. Milliseconds.
 */
const freeMs = 250
/**
 * Time of a turn that is counted at most: what its content can take. What a turn takes longer has other reasons, such as
 * a database that is slow. Milliseconds.
 */
const longestMs = 3_000

/** The duration of a turn. */
export type TurnTime = { accountId: string; ms: number }

/** Shares the time of a worker between accounts: a turn may take a hundred times as long as another one. */
export type TimeShares = {
  /**
   * Claims by `claim`, without the accounts whose last turn took long. They wait until the others have had as much time,
   * or no other account has a campaign that is due.
   */
  claim<T>(claim: (without: readonly string[]) => Promise<T[]>): Promise<T[]>
  /** Records the turns of a round. */
  record(turns: readonly TurnTime[]): void
  /** Returns true while an account waits for others. */
  isOwed(): boolean
}

/** Creates the shares of one worker. Several workers share for themselves. */
export function createTimeShares(): TimeShares {
  /** How much more time than others each account has had. Milliseconds, above 0. */
  const debts = new Map<string, number>()

  function pay(ms: number): void {
    for (const [accountId, debt] of debts) {
      if (debt > ms) debts.set(accountId, debt - ms)
      else debts.delete(accountId)
    }
  }

  return {
    async claim(claim) {
      for (;;) {
        const claimed = await claim([...debts.keys()])
        if (claimed.length > 0 || debts.size === 0) return claimed
        // No other account has a campaign that is due: the account with the smallest debt goes on.
        pay(Math.min(...debts.values()))
      }
    },
    record(turns) {
      if (turns.length === 0) return
      pay(turns.reduce((sum, { ms }) => sum + ms, 0) / turns.length)
      for (const { accountId, ms } of turns) if (ms > freeMs) debts.set(accountId, Math.min(ms, longestMs) - freeMs)
    },
    isOwed: () => debts.size > 0,
  }
}
