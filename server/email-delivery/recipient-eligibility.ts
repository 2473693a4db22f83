import { simulatorDomain } from '../../contract/simulator.ts'
import type { SuppressionReason } from '../../contract/suppressions.ts'

/** The facts that decide whether a recipient may be sent to. Checked when an email is stored and when it is sent. */
export type RecipientStanding = {
  /** The domain of the address. */
  domain: string
  /** The audience of the email; null: it is a transactional email. */
  audienceId: string | null
  /** The reason why the address is on the suppression list; null: it is not on the list. */
  suppressed: SuppressionReason | null
  /** True when the person unsubscribed from the audience or from everything, or has not confirmed for the audience. */
  unsubscribed: boolean
  /** True when the email is about a topic that the person does not get, or that was deleted. */
  withoutTopic: boolean
}

/**
 * Returns why a recipient must not be sent to: `suppressed` or `unsubscribed`; null: they may. It is asked when an email
 * is stored, and when it is sent.
 */
export function withheldFor({
  domain,
  audienceId,
  suppressed,
  unsubscribed,
  withoutTopic,
}: RecipientStanding): 'suppressed' | 'unsubscribed' | null {
  // Results of the simulator must be repeatable.
  if (domain === simulatorDomain) return null
  // People who unsubscribed still get transactional email, such as a receipt.
  if (suppressed !== null && (suppressed !== 'unsubscribe' || audienceId !== null)) return 'suppressed'
  return (unsubscribed || withoutTopic) && audienceId !== null ? 'unsubscribed' : null
}
