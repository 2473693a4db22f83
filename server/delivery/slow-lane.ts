/*
 * Which webhooks belong in the slow lane. A webhook is moved there when it would hold others up:
 * its endpoint does not answer for a while, its deliveries wait for one another longer than a moment,
 * or they do nothing but fail. It comes back after a run of quick successes.
 */

/** A webhook whose deliveries wait this long for its own cap moves to the slow lane. Milliseconds. */
export const saturationMs = 1_000

/** A webhook whose endpoint is silent for this long moves to the slow lane. Milliseconds. */
export const hangingMs = 2_000

const failuresUntilSlow = 10
const successesUntilNormal = 10
const quickMs = 1_000

/** An attempt as it bears on the lane of its webhook; `slow` is where that is. */
export type Observation = { slow: boolean; success: boolean; durationMs: number }

/** What this process saw of the endpoints lately. */
export type HealthBook = {
  note(webhookId: string, observation: Observation): void
  /** Webhooks in the normal lanes with ten failures in a row. */
  failing(): string[]
  /** Webhooks in the slow lane with ten successes in a row, each under a second. */
  recovered(): string[]
  forget(webhookIds: readonly string[]): void
}

export function createHealthBook(): HealthBook {
  const failures = new Map<string, number>()
  const quickSuccesses = new Map<string, number>()
  return {
    note(webhookId, { slow, success, durationMs }) {
      const run = slow ? quickSuccesses : failures
      const counts = slow ? success && durationMs < quickMs : !success
      if (counts) run.set(webhookId, (run.get(webhookId) ?? 0) + 1)
      else run.delete(webhookId)
    },
    failing: () => withAtLeast(failuresUntilSlow, failures),
    recovered: () => withAtLeast(successesUntilNormal, quickSuccesses),
    forget(webhookIds) {
      for (const id of webhookIds) {
        failures.delete(id)
        quickSuccesses.delete(id)
      }
    },
  }
}

function withAtLeast(least: number, run: ReadonlyMap<string, number>): string[] {
  return [...run].filter(([, count]) => count >= least).map(([id]) => id)
}
