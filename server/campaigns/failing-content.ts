import type { CampaignRow } from './queries.ts'

/** When all of so many failed to be rendered, the campaign is paused, once. */
const failuresThatPause = 100

/**
 * The outcome of rendering the message to a person. `variant`: the one that was rendered; null: the campaign has none.
 * `fault`: why it could not be rendered; null: it was rendered.
 */
export type RenderingOutcome = { variant: number | null; fault: string | null }

type Failures = Pick<CampaignRow, 'ab_test' | 'ab_failed'>

/**
 * Adds the outcomes of a turn to the failures of each variant, and returns these. Null for a variant that was rendered for
 * somebody. Returns null when the campaign has no variants.
 */
export function addFailures(
  { ab_test: test, ab_failed: failed }: Failures,
  outcomes: readonly RenderingOutcome[],
): (number | null)[] | null {
  if (test === null) return null
  const next = test.variants.map((_, number) => (failed === null ? 0 : (failed[number] ?? null)))
  for (const { variant, fault } of outcomes) {
    const count = variant === null ? null : next[variant]
    if (variant !== null && count != null) next[variant] = fault === null ? null : count + 1
  }
  return next
}

/**
 * Returns why a campaign is to be paused after a turn: its content, or that of variants, failed for the first 100 people
 * and more, and for all of them. Null: go on. It is paused once for each, by the turn in which the hundredth failed: when
 * it is resumed, it goes on with the others. choose-winner.ts refuses to send a variant that failed for all to the rest.
 */
export function reasonToPause(
  before: Failures & Pick<CampaignRow, 'failed_count'>,
  after: CampaignRow,
  outcomes: readonly RenderingOutcome[],
): string | null {
  const lastFault = outcomes.findLast(({ fault }) => fault !== null)?.fault
  if (lastFault == null) return null
  const isSomeRendered = after.ab_failed?.includes(null) ?? false
  const isSentToNobody = after.queued_count + after.handed_over_count === 0 && !isSomeRendered
  if (isSentToNobody && isHundredth(before.failed_count, after.failed_count)) {
    return sentence('The content', after.failed_count, lastFault)
  }
  // That it failed for everybody was told before.
  if (isSentToNobody && before.failed_count >= failuresThatPause) return null
  const reasons = (after.ab_test?.variants ?? []).flatMap(({ name }, number) => {
    const failed = after.ab_failed?.[number] ?? 0
    if (!isHundredth(before.ab_failed?.[number] ?? 0, failed)) return []
    const fault = outcomes.findLast((one) => one.variant === number && one.fault !== null)?.fault ?? lastFault
    return [sentence(`The content of the variant "${name}"`, failed, fault)]
  })
  return reasons.length === 0 ? null : reasons.join(' ')
}

function isHundredth(before: number, after: number): boolean {
  return before < failuresThatPause && after >= failuresThatPause
}

function sentence(content: string, people: number, fault: string): string {
  return `${content} could not be rendered for any of the first ${people} people. The last fault: ${fault}`
}
