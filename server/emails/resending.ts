import type { Trx } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import { type Mailbox, readMailbox, writeMailbox } from '../message/mailbox.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { findHead, findKeptEmail, selectRecipients } from './queries.ts'
import type { ReadEmail } from './validate-email.ts'

/**
 * Returns an email that has ended as one to be sent at once, without HTML, text and attachments: `copyContent` copies
 * them. The email stays until the transaction ends. Throws `not_found` and `email_not_ended`.
 */
export async function readEnded(trx: Trx, scope: Scope, id: string): Promise<ReadEmail> {
  const row = await findKeptEmail(trx, scope, id)
  if (row === undefined) throw notFound('email', id)
  if (row.completed_at === null) {
    const way = row.status === 'scheduled' ? 'Cancel it first, or wait for its time' : 'Wait until it has ended'
    throw new DomainError(
      'email_not_ended',
      `The email "${id}" is ${row.status}: it would reach people twice. ${way}; GET /v1/emails/${id} shows how far it is.`,
    )
  }
  const [head, recipients] = await Promise.all([findHead(trx, id), selectRecipients(trx, [id])])
  if (head === undefined) throw notFound('email', id)
  return {
    from: mailboxOf(row.sender),
    replyTo: head.reply_to,
    recipients: recipients.map((recipient) => ({
      ...mailboxOf(writeMailbox(recipient)),
      kind: recipient.kind,
      key: addressKey(recipient.address),
    })),
    subject: row.subject,
    html: null,
    text: null,
    template: null,
    headers: head.headers,
    attachments: [],
    tags: row.tags,
    metadata: row.metadata,
    audienceId: row.audience_id,
    topicId: row.topic_id,
    trackOpens: row.track_opens,
    trackClicks: row.track_clicks,
    scheduledAt: null,
  }
}

/** Reads an address that was accepted before. */
function mailboxOf(text: string): Mailbox {
  const { mailbox, fault } = readMailbox(text)
  if (mailbox === null) throw new Error(`a stored address cannot be read: ${fault}`)
  return mailbox
}
