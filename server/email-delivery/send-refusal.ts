import { type RecipientStanding, withheldFor } from './recipient-eligibility.ts'

/** The domain an email is sent from. */
export type EmailDomain = {
  id: string
  name: string
  status: 'pending' | 'verified' | 'failed'
  /** The host of the return path. */
  returnPath: string
}

/** Says, in a sentence for people, why nothing may be sent to a recipient any more; null when the email may be sent. */
export function withheldReason(standing: RecipientStanding, mayHaveIt: boolean): string | null {
  switch (withheldFor(standing)) {
    case 'suppressed':
      return `The address came onto the suppression list (${standing.suppressed}) ${beforeSent(mayHaveIt)}`
    case 'unsubscribed':
      return `The person unsubscribed ${beforeSent(mayHaveIt)}`
    case null:
      return null
  }
}

/** Why nothing is sent from a domain, for people: for good, or until it is verified again. */
export type SendRefusal = { kind: 'failed'; reason: string } | { kind: 'deferred'; reason: string }

/**
 * What keeps an email from being sent from its domain; null: nothing. One that had failed and is being checked
 * anew may soon be verified again.
 *
 * @param domain Null: it is gone.
 * @param mayHaveIt Whether a server may have the message all the same.
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
 * What keeps an email with links to this service from being sent while they would lead nowhere; null: nothing. It was
 * accepted by a process with other settings, or before they were changed, and waits for its operator to mend them.
 *
 * @param fault Why they would lead nowhere, for people; null: they lead to this service.
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
