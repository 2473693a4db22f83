import { simulatorDomain } from '../../contract/simulator.ts'
import type { EmailStatus, RecipientStatus } from '../database/tables/emails.ts'
import { isWaiting, statusOfEmail } from '../email-delivery/email-status.ts'
import { writeMailbox } from '../message/mailbox.ts'
import type { NewEvent } from '../outbox/append.ts'
import { newId } from '../shared/ids.ts'
import type { Eligibility, SendingScope } from './eligibility.ts'
import type { NewRecipient, ReadEmail } from './read-email.ts'

/** A recipient as it is stored first. */
export type BegunRecipient = NewRecipient & { status: RecipientStatus; reason: string | null }

/** An email as it is stored first. */
export type NewEmail = {
  id: string
  status: EmailStatus
  domainId: string | null
  messageId: string
  sender: string
  recipients: readonly BegunRecipient[]
  /** Whether anything is to be done for it. */
  waits: boolean
  content: ReadEmail
}

export type Beginning = { sender: SendingScope; judge: Pick<Eligibility, 'domainIdOf' | 'reasonAgainst'>; at: Date }

/**
 * How an email that was found good begins. A test key sends nothing, and a suppressed address gets nothing;
 * the recipients of the simulator play in either case.
 */
export function beginEmail(content: ReadEmail, { sender, judge, at }: Beginning): NewEmail {
  const recipients = content.recipients.map((recipient): BegunRecipient => {
    if (recipient.domain === simulatorDomain) return { ...recipient, status: 'queued', reason: null }
    if (sender.mode === 'test') return { ...recipient, status: 'validated', reason: null }
    const reason = judge.reasonAgainst(recipient, content)
    return { ...recipient, status: reason === null ? 'queued' : 'suppressed', reason }
  })
  const statuses = recipients.map(({ status }) => status)
  const waits = statuses.some(isWaiting)
  const id = newId('email', at)
  return {
    id,
    status: waits && content.scheduledAt !== null ? 'scheduled' : statusOfEmail(statuses),
    domainId: judge.domainIdOf(content),
    messageId: `<${id.slice(id.indexOf('_') + 1)}@${content.from.domain}>`,
    sender: writeMailbox(content.from),
    recipients,
    waits,
    content,
  }
}

/** What is told of a new email at once: the recipients that get nothing. */
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
