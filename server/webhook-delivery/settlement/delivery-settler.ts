import { startBatches } from '../../lib/batches.ts'
import type { HeldDelivery } from '../scheduling/deliveries-in-hand.ts'
import { type SettleMeans, settle } from './settle-attempts.ts'
import type { Settlement } from './settlement.ts'

/** Attempts settled at once at most. */
const batchSize = 500
/** Attempts fewer than these wait a moment for more: a statement for a handful costs as much as one for hundreds. */
const fullBatch = 250
const gatheringMs = 10

/** Attempts that were made and wait to be written down. */
export type DeliverySettler = {
  add(held: HeldDelivery, settlement: Settlement): void
  /** Whether an attempt of it waits to be written down. */
  holds(held: HeldDelivery): boolean
  /** Milliseconds since it last settled, or found nothing to settle, without an error. */
  idleMs(): number
  /** Ends when all is settled, or at the deadline. Milliseconds, monotonic. */
  stop(deadline: number): Promise<void>
}

export type DeliverySettlerOptions = SettleMeans & {
  /** Milliseconds between attempts at settling what could not be settled. */
  intervalMs: number
  /** Told of what is settled. */
  onSettled: (held: readonly HeldDelivery[]) => void
  onError: (error: unknown) => void
}

/** Settles attempts in batches. A batch that fails waits here and is settled again. */
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
