/**
 * Limits how much of a shared resource one account may hold: dynamic thresholds (Choudhury and Hahne, Dynamic Queue
 * Length Thresholds for Shared-Memory Packet Switches, 1998). An account may take one more while it holds fewer than α
 * times the free ones.
 *
 * One greedy account holds α/(1+α) of the places, and `n` of them α/(1+nα) each. The rest stays free for the next
 * account, without any reservation by name.
 */
export type Threshold = {
  /** Size of the shared resource. At least 1. */
  places: number
  /** At least 1, so that an account that holds nothing may always take a free one. */
  alpha: number
}

/** Returns true if an account that holds `held` may take one more, while all accounts together hold `taken`. */
export function mayHoldMore({ places, alpha }: Threshold, held: number, taken: number): boolean {
  const free = places - taken
  return free >= 1 && held < alpha * free
}

/** Returns how many more an account may take at once, while it holds `held` and all accounts hold `taken`. */
export function roomFor({ places, alpha }: Threshold, held: number, taken: number): number {
  const free = places - taken
  return Math.max(0, Math.min(free, Math.ceil((alpha * free - held) / (1 + alpha))))
}
