import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import type { Outcome, Unusable } from './transport.ts'

/** Exponential back-off after a destination or host could not be used: each pause is twice the last. Milliseconds. */
export type Pauses = { firstMs: number; longestMs: number }

/** Short, because there is no other way out and one connection costs a relay nothing. */
export const relayPauses: Pauses = { firstMs: 1_000, longestMs: 15_000 }
/** For a host, and for a domain whose hosts all failed. Waiting emails are looked at again as often. */
export const hostPauses: Pauses = { firstMs: 5_000, longestMs: 60_000 }

/**
 * Returns the pause in milliseconds.
 *
 * @param times Consecutive failures, at least 1.
 */
export function pauseAfter({ firstMs, longestMs }: Pauses, times: number): number {
  return Math.min(longestMs, firstMs * 2 ** (times - 1))
}

/** The destinations that could not be used, with the end of their back-off. */
export type Backoffs = {
  /** Returns the back-off of a destination that could not be used the last time; null: it could be used. */
  of(destination: string): Backoff | null
  /** Records the outcomes of a conversation. `before` is what `of` returned when the conversation began. */
  note(destination: string, before: Backoff | null, outcomes: readonly Outcome[]): void
}

export type Backoff = Unusable & { times: number }

/** Maximum destinations in back-off. Older ones are forgotten, and so tried again. */
const maxDestinations = 10_000

/** @param onCount Called with the number of destinations that cannot be used, after each conversation. */
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
        // Several conversations that began at the same time count as one failure.
        const times = (known?.times ?? 0) + 1
        const until = new Date(clock.now().getTime() + pauseAfter(pauses, times))
        rests.set(destination, { until, times, reason: failed.reason, reply: failed.reply, host: failed.host })
      }
      onCount(rests.size)
    },
  }
}
