import { startBatches } from '../batches.ts'
import { changeCount } from '../counts.ts'
import type { Queue } from '../queue/queue.ts'
import type { Claim } from './load.ts'

/** Knows which of the deliveries that share a job are still in hand, and ends the job with the last of them. */
export type KeptBook = {
  /** Deliveries that were fanned out together and are kept from now on. Those with jobs of their own are passed over. */
  note(claims: readonly Claim[]): void
  /** Deliveries that are settled, or that have jobs of their own now. */
  done(claims: readonly Claim[]): void
  /** Ends the jobs that can be ended by then. Milliseconds, monotonic. */
  stop(deadline: number): Promise<void>
}

/** Jobs ended by one statement. */
const batchSize = 500
/** One that ends late does no harm, and a statement for a handful costs as much as one for hundreds. */
const fullBatch = 100
const gatheringMs = 100

export function createKeptBook(options: {
  queue: Pick<Queue, 'kept'>
  /** Milliseconds between attempts at ending what could not be ended. */
  intervalMs: number
  onError: (error: unknown) => void
}): KeptBook {
  /** Deliveries still in hand, by their jobs. */
  const inHand = new Map<string, number>()
  const ending = startBatches<string>({
    ...options,
    size: batchSize,
    full: fullBatch,
    gatheringMs,
    work: (jobIds) => options.queue.kept.end(jobIds),
  })

  function change(claims: readonly Claim[], by: 1 | -1): void {
    for (const { claimed } of claims) {
      if (!('keptBy' in claimed)) continue
      if (changeCount(inHand, claimed.keptBy, by) <= 0) ending.add(claimed.keptBy)
    }
  }

  return {
    note: (claims) => change(claims, 1),
    done: (claims) => change(claims, -1),
    stop: ending.stop,
  }
}
