/**
 * How much of what all share an account may hold: dynamic thresholds (Choudhury and Hahne, Dynamic Queue Length
 * Thresholds for Shared-Memory Packet Switches, 1998). It may take one more while it holds fewer than α times what is
 * free.
 *
 * One account that takes all it can holds α/(1+α) of the places, and `n` such accounts α/(1+nα) each. The rest stays
 * free for whoever comes next, without anybody knowing who that is.
 */
export type Threshold = {
  /** How much there is to hold. At least 1. */
  places: number
  /** At least 1, so that who holds nothing may take one while there is one at all. */
  alpha: number
}

/** Whether an account that holds `held` may have one more, while `taken` are held by all. */
export function mayHoldMore({ places, alpha }: Threshold, held: number, taken: number): boolean {
  const free = places - taken
  return free >= 1 && held < alpha * free
}

/** How many more an account may have at once, while it holds `held` and all hold `taken`. */
export function roomFor({ places, alpha }: Threshold, held: number, taken: number): number {
  const free = places - taken
  return Math.max(0, Math.min(free, Math.ceil((alpha * free - held) / (1 + alpha))))
}
