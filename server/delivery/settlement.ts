import type { ExchangeOutcome } from './exchange.ts'
import type { DueDelivery } from './load.ts'
import type { Verdict } from './verdict.ts'

/** An attempt that was made and is not yet written down. */
export type Settlement = { delivery: DueDelivery; outcome: ExchangeOutcome; verdict: Verdict }
