import { simulatorDomain } from '../../contract/simulator.ts'
import type { SuppressionReason } from '../../contract/suppressions.ts'

/** What is known of a recipient when an email is stored, and again when it is sent. */
export type RecipientStanding = {
  /** The domain of the address. */
  domain: string
  /** The audience the email is for; null: it is a transactional email. */
  audienceId: string | null
  /** Why the address is on the suppression list; null: it is not. */
  suppressed: SuppressionReason | null
  /** True when the person unsubscribed from the audience or from everything. */
  unsubscribed: boolean
}

/**
 * Says why nothing may be sent to a recipient: `suppressed` or `unsubscribed`; null when the email may be sent. The one
 * rule of who may be sent to.
 */
export function withheldFor({
  domain,
  audienceId,
  suppressed,
  unsubscribed,
}: RecipientStanding): 'suppressed' | 'unsubscribed' | null {
  // The simulator must be able to play a result again.
  if (domain === simulatorDomain) return null
  // People who unsubscribed still get transactional email, such as a receipt.
  if (suppressed !== null && (suppressed !== 'unsubscribe' || audienceId !== null)) return 'suppressed'
  return unsubscribed && audienceId !== null ? 'unsubscribed' : null
}
