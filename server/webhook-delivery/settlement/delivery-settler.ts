import { startBatches } from '../../lib/batches.ts'
import type { HeldDelivery } from '../scheduling/deliveries-in-hand.ts'
import { type SettleMeans, settle } from './settle-attempts.ts'
import type { Settlement } from './settlement-types.ts'

/** Maximum number of attempts settled by one statement. */
const batchSize = 500
/** Smaller batches wait `gatheringMs` for more: a statement for a few attempts costs as much as one for hundreds. */
const fullBatch = 250
const gatheringMs = 10

/** A queue of attempts that wait to be written to the database. */
export type DeliverySettler = {
  add(held: HeldDelivery, settlement: Settlement): void
  /** Returns true while an attempt of this delivery waits to be written. */
  holds(held: HeldDelivery): boolean
  /** Returns the milliseconds since it last settled, or had nothing to settle, without an error. */
  idleMs(): number
  /** Stops once all is settled, or at the deadline. Milliseconds, monotonic. */
  stop(deadline: number): Promise<void>
}

export type DeliverySettlerOptions = SettleMeans & {
  /** Milliseconds before a failed batch is settled again. */
  intervalMs: number
  /** Called with the deliveries of each settled batch. */
  onSettled: (held: readonly HeldDelivery[]) => void
  onError: (error: unknown) => void
}

/** Starts settling attempts in batches. A batch that fails stays in the queue and is settled again. */
export function startDeliverySettler(options: DeliverySettlerOptions): DeliverySettler {
  const { intervalMs, onSettled, onError } = options
  const batches = startBatches<{ held: HeldDelivery; settlement: Settlement }>({
    size: batchSize,
    full: fullBatch,
    gatheringMs,
    intervalMs,
    onError,
    async work(batch) {
      await settle(
        options,
        batch.map(({ settlement }) => settlement),
      )
      onSettled(batch.map(({ held }) => held))
    },
  })
  return {
    add: (held, settlement) => batches.add({ held, settlement }),
    holds: (held) => batches.some((entry) => entry.held === held),
    idleMs: batches.idleMs,
    stop: batches.stop,
  }
}
