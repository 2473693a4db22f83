import type { Email, EmailDetails } from '../../contract/email-resource.ts'
import { writeMailbox } from '../message/mailbox.ts'
import type { ContentRow, EmailRow, ListedAttachment, RecipientRow, TimelineRow } from './queries.ts'

/** Returns an email as lists show it. `recipients`: those of this email, by position. */
export function toEmail(row: EmailRow, recipients: readonly RecipientRow[]): Email {
  const named = (kind: RecipientRow['kind']) => recipients.filter((one) => one.kind === kind).map(writeMailbox)
  return {
    id: row.id,
    mode: row.mode,
    status: row.status,
    from: row.sender,
    to: named('to'),
    cc: named('cc'),
    bcc: named('bcc'),
    subject: row.subject,
    messageId: row.message_id,
    tags: row.tags,
    metadata: row.metadata,
    campaignId: row.campaign_id,
    audienceId: row.audience_id,
    topicId: row.topic_id,
    scheduledAt: row.scheduled_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
    completedAt: row.completed_at?.toISOString() ?? null,
  }
}

export type DetailRows = {
  recipients: readonly RecipientRow[]
  content: ContentRow
  attachments: ListedAttachment[]
  timeline: readonly TimelineRow[]
}

export function toEmailDetails(
  row: EmailRow,
  { recipients, content, attachments, timeline }: DetailRows,
): EmailDetails {
  return {
    ...toEmail(row, recipients),
    replyTo: content.reply_to,
    html: content.html,
    text: content.text,
    headers: content.headers,
    attachments: attachments.map(({ filename, content_type, content_id, size }) => ({
      filename,
      contentType: content_type,
      contentId: content_id,
      size,
    })),
    trackOpens: row.track_opens,
    trackClicks: row.track_clicks,
    recipients: recipients.map((recipient) => ({
      address: recipient.address,
      name: recipient.name,
      kind: recipient.kind,
      status: recipient.status,
      attemptCount: recipient.attempt_count,
      nextAttemptAt: recipient.next_attempt_at?.toISOString() ?? null,
      reason: recipient.reason,
    })),
    timeline: timeline.map(({ at, type, position, detail, reply, host }) => ({
      at: at.toISOString(),
      type,
      recipient: position === null ? null : (recipients[position]?.address ?? null),
      detail,
      reply,
      host,
    })),
  }
}
