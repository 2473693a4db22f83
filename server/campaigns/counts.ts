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

/** The outcome of a status with its reason. */
export function outcomeOf({ status, reason }: { status: string; reason: string | null }): Outcome {
  return (status === 'skipped' ? reason : status) as Outcome
}
