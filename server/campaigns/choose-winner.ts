import type { Trx } from '../database/connection.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'
import { decide } from './ab-test.ts'
import { type CampaignRow, setDue } from './queries.ts'
import { wrongState } from './states.ts'

/** Where the name of a variant stands in a request. */
const path = 'body.variant'

/** Returns the number of a variant. Throws `rule_violation` when the campaign has none of this name. */
export function numberOfVariant({ ab_test: test }: Pick<CampaignRow, 'ab_test'>, name: string): number {
  const names = test?.variants.map((variant) => variant.name) ?? []
  const number = names.indexOf(name)
  if (number === -1) {
    const known = names.map((one) => `"${one}"`).join(', ')
    throw brokenRule(
      path,
      test === null ? 'must not be given: the campaign has no A/B test' : `must be one of ${known}`,
    )
  }
  return number
}

/**
 * Has the rest of a locked campaign get a variant. Returns the campaign. Does nothing when it gets that already. Throws
 * `rule_violation` for an unknown variant, and `campaign_state` where there is nothing to choose.
 */
export async function chooseWinner(
  trx: Trx,
  row: CampaignRow,
  { name, at }: { name: string; at: Date },
): Promise<CampaignRow> {
  const winner = numberOfVariant(row, name)
  if (row.ab_winner === winner) return row
  const refusal = refusalToChoose(row, winner)
  if (refusal !== null) throw refusal
  const key = { accountId: row.account_id, id: row.id }
  if (row.status === 'sending') await setDue(trx, key, 0)
  return decide(trx, key, { winner, at })
}

function refusalToChoose({ id, status, ab_test: test, ...row }: CampaignRow, winner: number): DomainError | null {
  const refuse = (why: string) => new DomainError('campaign_state', `The campaign "${id}" ${why}`)
  if (row.ab_winner !== null) {
    return refuse(
      `has the winner "${test?.variants[row.ab_winner]?.name}", which goes to the rest. It cannot be changed.`,
    )
  }
  if (test?.share === 100) return refuse('tests its variants on everybody: there is no rest that gets a winner.')
  if (status !== 'sending' && status !== 'paused') return wrongState(id, status, 'given a winner')
  if (row.ab_tested_at === null) {
    return refuse(
      'is still sending its test. Choose the winner when everybody in the test was written to: `waitingFor` says `ab_test` then.',
    )
  }
  const failed = row.ab_failed?.[winner] ?? 0
  if (failed > 0) {
    return refuse(
      `cannot send the variant "${test?.variants[winner]?.name}" to the rest: it could not be rendered for any of the ${failed} people who were to get it. Choose another one.`,
    )
  }
  return null
}
