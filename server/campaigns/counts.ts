import type { CampaignRow } from './queries.ts'

/** Recipients by what they became. */
export type Outcome = 'queued' | 'handed_over' | 'failed' | 'left' | 'unsubscribed' | 'suppressed' | 'canceled'
export type Outcomes = Partial<Record<Outcome, number>>

type Counts = Pick<CampaignRow, `${Outcome}_count`>

/** Returns the counts of a locked campaign after recipients have changed. Those that lost some are negative. */
export function addCounts(row: Counts, changes: Outcomes): Partial<Counts> {
  return Object.fromEntries(
    Object.entries(changes).map(([outcome, by]) => {
      const column = `${outcome as Outcome}_count` as const
      return [column, row[column] + by]
    }),
  )
}

/** Returns how many recipients have each outcome. Those with the status `skipped` have their reason as outcome. */
export function sumOutcomes(changed: readonly { status: string; reason: string | null; count?: number }[]): Outcomes {
  const sums: Outcomes = {}
  for (const { status, reason, count = 1 } of changed) {
    const outcome = (status === 'skipped' ? reason : status) as Outcome
    sums[outcome] = (sums[outcome] ?? 0) + count
  }
  return sums
}

/** Returns how many recipients have had no turn yet. */
export function waitingOf(row: Counts & Pick<CampaignRow, 'recipient_count'>): number {
  const { queued_count, handed_over_count, failed_count, left_count, unsubscribed_count, suppressed_count } = row
  const done = queued_count + handed_over_count + failed_count + left_count + unsubscribed_count + suppressed_count
  return row.recipient_count - done - row.canceled_count
}
