import { simulatorDomain } from '../../contract/simulator.ts'
import type { WithheldFor } from '../database/tables/emails.ts'
import { type RecipientStanding, withheldFor } from './recipient-eligibility.ts'

/** The sending domain of an email. */
export type EmailDomain = {
  id: string
  name: string
  status: 'pending' | 'verified' | 'failed'
  /** The host of the return path. */
  returnPath: string
}

/**
 * `hasLeft`: whether the email is of a campaign, and the person is not in its audience any more. `isPending`: whether
 * they are not written to because they have not confirmed.
 */
type SendingStanding = RecipientStanding & { hasLeft: boolean; isPending: boolean }

/** Why a recipient may no longer be sent to: as a code, and as a sentence for people. */
export type Withholding = { withheldFor: WithheldFor; reason: string }

/** Returns why a recipient may no longer be sent to; null: they may. */
export function withholdingOf(standing: SendingStanding, mayHaveIt: boolean): Withholding | null {
  const { hasLeft, domain } = standing
  const why = withheldFor(standing) ?? (hasLeft && domain !== simulatorDomain ? 'left' : null)
  return why && { withheldFor: why, reason: `${happened(why, standing)} ${beforeSent(mayHaveIt)}` }
}

function happened(why: WithheldFor, { suppressed, isPending, unsubscribed }: SendingStanding): string {
  switch (why) {
    case 'suppressed':
      return `The address came onto the suppression list (${suppressed})`
    case 'unsubscribed':
      if (isPending) return 'The person had not confirmed'
      return unsubscribed ? 'The person unsubscribed' : 'The person left the topic of the email, or it was deleted,'
    case 'left':
      return 'The person left the audience'
  }
}

/** The reason not to send an email now, as text for people. `failed`: for good. `deferred`: it is tried again. */
export type SendRefusal = { kind: 'failed'; reason: string } | { kind: 'deferred'; reason: string }

/**
 * Returns why the sending domain does not allow sending; null: it does. A `pending` domain defers the email, because
 * a domain that is being checked again may soon be verified.
 *
 * @param domain Null: it was deleted.
 * @param mayHaveIt True when a server may already have the message.
 */
export function refusalOf(
  domain: Pick<EmailDomain, 'name' | 'status'> | null,
  { mayHaveIt }: { mayHaveIt: boolean },
): SendRefusal | null {
  if (domain === null) return { kind: 'failed', reason: `The sending domain was deleted ${beforeSent(mayHaveIt)}` }
  const lost = `The sending domain "${domain.name}" is not verified any more`
  switch (domain.status) {
    case 'verified':
      return null
    case 'pending':
      return { kind: 'deferred', reason: `${lost}, and its DNS records are looked for: the email waits for them.` }
    case 'failed':
      return {
        kind: 'failed',
        reason: `${lost}: its DNS records were gone on several days ${beforeSent(mayHaveIt)}`,
      }
  }
}

/**
 * Returns the refusal for an email whose links would not lead to this service; null: they do. Such an email was
 * accepted by a process with other settings, or before a change of settings, and waits until the operator repairs them.
 *
 * @param fault Why the links would lead nowhere, as text for people; null: they lead to this service.
 */
export function refusalOfLinks(fault: string | null): SendRefusal | null {
  if (fault === null) return null
  return {
    kind: 'deferred',
    reason: `Links in this email would lead nowhere (${fault}): it waits until the operator of the service sets PUBLIC_URL to its https address.`,
  }
}

function beforeSent(mayHaveIt: boolean): string {
  if (!mayHaveIt) return 'before the email was sent.'
  return 'before the email was sent again. Whether the server took it before is not known: the recipient may have it.'
}
