import type { Generated, JSONColumnType } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** Status of an email as a whole; see `statusOfEmail` for how it follows from the recipients. */
export type EmailStatus =
  | 'validated'
  | 'scheduled'
  | 'queued'
  | 'sending'
  | 'sent'
  | 'delivered'
  | 'bounced'
  | 'failed'
  | 'suppressed'
  | 'canceled'

export type RecipientStatus =
  | 'validated'
  | 'queued'
  | 'sending'
  | 'deferred'
  | 'accepted'
  | 'delivered'
  | 'bounced'
  | 'complained'
  | 'failed'
  | 'suppressed'
  | 'canceled'

/**
 * `suppressed`: the address is on the suppression list. `unsubscribed`: the person does not get what the email is about,
 * or has not confirmed. `left`: they are not in the audience of the campaign any more.
 */
export type WithheldFor = 'suppressed' | 'unsubscribed' | 'left'

export type EmailsTable = {
  id: string
  account_id: string
  mode: Mode
  status: EmailStatus
  /** Null: a test email, or an email whose domain is deleted. */
  domain_id: string | null
  /** The From header, as given. */
  sender: string
  subject: string
  /** With angle brackets; the same on every attempt. */
  message_id: string
  tags: Generated<string[]>
  metadata: Generated<Record<string, string>>
  campaign_id: string | null
  /** The variant of its campaign that it tests. Null: none. */
  variant: Generated<number | null>
  audience_id: string | null
  /** The topic that it is about, which may be deleted. Only with an audience. */
  topic_id: Generated<string | null>
  track_opens: Generated<boolean>
  track_clicks: Generated<boolean>
  scheduled_at: Date | null
  created_at: Date
  updated_at: Date
  completed_at: Date | null
}

export type EmailContentsTable = {
  email_id: string
  reply_to: Generated<string[]>
  headers: JSONColumnType<Record<string, string>>
  html: string | null
  text: string | null
}

export type EmailAttachmentsTable = {
  email_id: string
  position: number
  filename: string
  content_type: string
  /** Not null: the attachment is shown inside the HTML, which refers to it by this id. */
  content_id: string | null
  content: Buffer
}

export type EmailRecipientsTable = {
  email_id: string
  /** From 0, over to, cc and bcc in this order. */
  position: number
  account_id: string
  kind: 'to' | 'cc' | 'bcc'
  /** The display name, if one was given. */
  name: string | null
  address: string
  /** The key by which addresses are compared: see `keyOfAddress`. */
  address_key: string
  /** The part after the @, in lower case, with A-labels. */
  domain: string
  status: RecipientStatus
  attempt_count: Generated<number>
  /** Later by the time that its 72 hours do not count: `markSending` in server/email-delivery/sending-queries.ts. */
  first_attempt_at: Date | null
  next_attempt_at: Date | null
  /** Why it is deferred, bounced, failed or suppressed. */
  reason: string | null
  /** Why it became `suppressed` after the email was stored. Null: it did not, or did in a version without this column. */
  withheld_for: WithheldFor | null
  /** When `email.delivery_delayed` was emitted, which happens once; later as `first_attempt_at` is. */
  delayed_at: Date | null
  accepted_at: Date | null
  delivered_at: Date | null
  opened_at: Date | null
  clicked_at: Date | null
  complained_at: Date | null
  /** The numbers of the links of its campaign that were clicked; 0: another link. Null: none. */
  clicked_links: number[] | null
  /** When the link to unsubscribe in this email was used for the first time. */
  unsubscribed_at: Date | null
  /** True if a person opened it, not a scanner. Of emails that test a variant only. Null: nobody has yet. */
  opened_by_person: Generated<boolean | null>
  clicked_by_person: Generated<boolean | null>
}

export type EmailTimelineTable = {
  email_id: string
  id: Generated<string>
  /** Null: the entry is about the email as a whole. */
  position: number | null
  at: Date
  type: string
  detail: string | null
  /** The server's reply, unchanged. */
  reply: string | null
  host: string | null
}

export type SuppressionSource = 'api' | 'smtp_answer' | 'notification' | 'feedback_report' | 'unsubscribe_link'

export type SuppressionsTable = {
  id: string
  account_id: string
  address: string
  address_key: string
  reason: 'hard_bounce' | 'complaint' | 'unsubscribe' | 'manual'
  /** The email that caused it. Null: the API did. */
  email_id: string | null
  /** Null: it follows from the reason; see `server/suppressions/service.ts`. */
  source: SuppressionSource | null
  /** When the owner unsubscribed, and by which email, if the address is suppressed for another reason. */
  unsubscribed_at: Date | null
  unsubscribe_email_id: string | null
  created_at: Date
}

/** For filtering lists of emails: a row for each pair of the metadata. */
export type EmailMetadataTable = { account_id: string; pair: string; email_id: string }

/** For filtering lists of emails: a row for each tag. Written by triggers of `emails`. */
export type EmailTagsTable = { account_id: string; mode: Mode; tag: string; email_id: string }

/** For searching emails: the beginning of the subject of each. Rows are never updated. */
export type EmailSubjectsTable = {
  account_id: string
  mode: Mode
  /** Made by `subjectKey`. An email without visible characters in its subject has no row. */
  subject_key: string
  email_id: string
}
