import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import type { Outcome, Unusable } from './transport.ts'

/** How long a way out is left alone after it could not be used: twice as long each time. Milliseconds. */
export type Pauses = { firstMs: number; longestMs: number }

/** There is no other way, and one connection costs a relay nothing. */
export const relayPauses: Pauses = { firstMs: 1_000, longestMs: 15_000 }
/** Of a host, and of a domain without another. What waits for it is looked at again as often. */
export const hostPauses: Pauses = { firstMs: 5_000, longestMs: 60_000 }

/** @param times on end that it could not be used, at least 1 */
export function pauseAfter({ firstMs, longestMs }: Pauses, times: number): number {
  return Math.min(longestMs, firstMs * 2 ** (times - 1))
}

/** Destinations that could not be used, each for as long as it is left alone. */
export type Backoffs = {
  /** What is known of a destination that could not be used the last time; null: nothing. */
  of(destination: string): Backoff | null
  /** Notes what became of a conversation, and `before`, what `of` said when it began. */
  note(destination: string, before: Backoff | null, outcomes: readonly Outcome[]): void
}

export type Backoff = Unusable & { times: number }

/** What is beyond this is forgotten, and so tried again. */
const maxDestinations = 10_000

/** @param onCount Told how many there are, whenever that changes. */
export function createBackoffs(
  pauses: Pauses,
  clock: Clock,
  onCount: (count: number) => void = () => undefined,
): Backoffs {
  const rests = new LRUCache<string, Backoff>({ max: maxDestinations })

  return {
    of: (destination) => rests.get(destination) ?? null,
    note(destination, before, outcomes) {
      const known = rests.get(destination) ?? null
      const failed = outcomes.find((outcome) => outcome.kind === 'deferred' && outcome.unusable)
      if (failed?.kind !== 'deferred') {
        rests.delete(destination)
      } else if (known === before) {
        // Others that began with this one tell no more than it does.
        const times = (known?.times ?? 0) + 1
        const until = new Date(clock.now().getTime() + pauseAfter(pauses, times))
        rests.set(destination, { until, times, reason: failed.reason, reply: failed.reply, host: failed.host })
      }
      onCount(rests.size)
    },
  }
}
