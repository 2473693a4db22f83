import { simulatorDomain } from '../../contract/simulator.ts'
import type { EmailStatus, RecipientStatus } from '../database/tables/emails.ts'
import { isWaiting, statusOfEmail } from '../email-delivery/email-status.ts'
import { writeMailbox } from '../message/mailbox.ts'
import type { NewEvent } from '../outbox/append.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import type { RecipientCount } from '../statistics/count-recipients.ts'
import type { Eligibility, SendingScope } from './eligibility.ts'
import type { NewRecipient, ReadEmail } from './validate-email.ts'

/** A recipient in its first state. */
export type BegunRecipient = NewRecipient & { status: RecipientStatus; reason: string | null }

/** An email in its first state. */
export type NewEmail = {
  id: string
  status: EmailStatus
  domainId: string | null
  /** Null: it is of no campaign. */
  campaignId: string | null
  /** The variant of the campaign that it tests. Null: none. */
  variant: number | null
  messageId: string
  sender: string
  recipients: readonly BegunRecipient[]
  /** True when at least one recipient is to be processed. */
  waits: boolean
  content: ReadEmail
}

export type Beginning = {
  sender: SendingScope
  judge: Pick<Eligibility, 'domainIdOf' | 'reasonAgainst'>
  at: Date
  /** The id of the email. Default: a new one. */
  id?: string
  /** Default: of no campaign. */
  campaignId?: string | null
  /** Default: it tests none. */
  variant?: number | null
}

/**
 * Returns the first state of an accepted email. A test key sends nothing, and nothing is sent to a suppressed address.
 * Recipients of the simulator are processed in both cases.
 */
export function beginEmail(
  content: ReadEmail,
  { sender, judge, at, id = newId('email', at), campaignId = null, variant = null }: Beginning,
): NewEmail {
  const recipients = content.recipients.map((recipient): BegunRecipient => {
    if (recipient.domain === simulatorDomain) return { ...recipient, status: 'queued', reason: null }
    if (sender.mode === 'test') return { ...recipient, status: 'validated', reason: null }
    const reason = judge.reasonAgainst(recipient, content)
    return { ...recipient, status: reason === null ? 'queued' : 'suppressed', reason }
  })
  const statuses = recipients.map(({ status }) => status)
  const waits = statuses.some(isWaiting)
  return {
    id,
    status: waits && content.scheduledAt !== null ? 'scheduled' : statusOfEmail(statuses),
    domainId: judge.domainIdOf(content),
    campaignId,
    variant,
    messageId: `<${id.slice(id.indexOf('_') + 1)}@${content.from.domain}>`,
    sender: writeMailbox(content.from),
    recipients,
    waits,
    content,
  }
}

/** Returns a count for each suppressed recipient of a new email. */
export function countsOf(
  { domainId, campaignId, content, recipients }: NewEmail,
  scope: Scope,
  at: Date,
): RecipientCount[] {
  const { tags } = content
  return recipients.flatMap(({ status, domain: recipientDomain }) =>
    status === 'suppressed'
      ? [{ scope, domainId, tags, campaignId, recipientDomain, at, figures: ['suppressed'] }]
      : [],
  )
}

/** Returns `email.failed` for each suppressed recipient of a new email. */
export function eventsOf({ id, content, recipients }: NewEmail, at: Date): NewEvent[] {
  return recipients.flatMap(({ status, address, reason }) =>
    status === 'suppressed' && reason !== null
      ? [
          {
            type: 'email.failed',
            data: { emailId: id, to: address, subject: content.subject, failedAt: at.toISOString(), reason },
          },
        ]
      : [],
  )
}
