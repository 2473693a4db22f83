import type { Trx } from '../database/connection.ts'
import { countFailed, type Turn } from './engine-queries.ts'
import type { CampaignRow } from './queries.ts'

/** When all of so many failed to be rendered, the campaign is paused. */
const failuresThatPause = 100

/** What became of a recipient, and the variant that they test. Null: none. */
type Outcome = Pick<Turn, 'status' | 'reason'> & { variant: number | null }

/**
 * Returns why a locked campaign is to be paused: its content, or that of a variant, failed for the first 100 people and
 * more, and for all of them. Null: go on. For a variant it is paused once, when the hundredth failed: a campaign that is
 * resumed then goes on with the others.
 *
 * @param outcomes Those of the turn that was written last.
 */
export async function reasonToPause(trx: Trx, row: CampaignRow, outcomes: readonly Outcome[]): Promise<string | null> {
  const lastFault = outcomes.findLast(({ status }) => status === 'failed')?.reason
  if (lastFault == null || row.failed_count < failuresThatPause) return null
  if (row.queued_count + row.handed_over_count === 0) return sentence('The content', row.failed_count, lastFault)
  for (const [variant, some] of Map.groupBy(outcomes, (one) => one.variant)) {
    const fault = some.findLast(({ status }) => status === 'failed')?.reason
    if (variant === null || fault == null || some.some(({ status }) => status === 'queued')) continue
    const failedNow = some.filter(({ status }) => status === 'failed').length
    const failed = await countFailed(trx, row, { variant, most: failuresThatPause + failedNow })
    if (failed >= failuresThatPause && failed - failedNow < failuresThatPause) {
      return sentence(`The content of the variant "${row.ab_test?.variants[variant]?.name}"`, failed, fault)
    }
  }
  return null
}

function sentence(content: string, people: number, fault: string): string {
  return `${content} could not be rendered for any of the first ${people} people. The last fault: ${fault}`
}
