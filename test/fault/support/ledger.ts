/**
 * The fate of every attempted write. A mark identifies a write: it is an address that no other write has, and that is
 * in the body of its event.
 */
export type Ledger = {
  /** Was begun. Until more is known, it may have been committed or not. */
  begin(mark: string): void
  /** Was acknowledged: it is there, once, whatever happens from now on. */
  acknowledge(mark: string): void
  /** Cannot have been committed. */
  rollBack(mark: string): void
  /** Notes claims whose holder died with them: each explains one request more than one. */
  lose(claims: Iterable<LostClaim>): void
  readonly marks: ReadonlyMap<string, Fate>
  /** How many claims of a delivery, or leases of an event, were lost. */
  lostClaimsOf(id: string): number
}

export type Fate = 'unknown' | 'acknowledged' | 'rolled back'

/** One claim of a delivery, or one lease of an event. What is claimed again has another time. */
export type LostClaim = { of: string; claimedAt: Date }

export function createLedger(): Ledger {
  const marks = new Map<string, Fate>()
  const lost = new Map<string, Set<number>>()

  return {
    begin: (mark) => void marks.set(mark, 'unknown'),
    acknowledge: (mark) => void marks.set(mark, 'acknowledged'),
    rollBack: (mark) => void marks.set(mark, 'rolled back'),
    lose(claims) {
      for (const { of, claimedAt } of claims) {
        const times = lost.get(of) ?? new Set()
        lost.set(of, times.add(claimedAt.getTime()))
      }
    },
    marks,
    lostClaimsOf: (id) => lost.get(id)?.size ?? 0,
  }
}
