import type { ExchangeOutcome } from '../attempt/exchange.ts'
import type { Verdict } from '../attempt/verdict.ts'
import type { DueDelivery } from '../load-deliveries.ts'

/** An attempt that was made and is not yet written to the database. */
export type Settlement = { delivery: DueDelivery; outcome: ExchangeOutcome; verdict: Verdict }
