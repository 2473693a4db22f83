import { lookup } from 'mime-types'
import { emailLimits } from '../../contract/email-content.ts'
import type { SendEmail } from '../../contract/emails.ts'
import { addressKey } from '../message/address.ts'
import { hasMailboxForm, type Mailbox, readMailbox, writeMailbox } from '../message/mailbox.ts'
import type { ErrorDetail } from '../shared/errors.ts'
import { decodeBase64, sizeOfBase64 } from './base64.ts'
import { faultsOfHeaders } from './headers.ts'

export type RecipientKind = 'to' | 'cc' | 'bcc'

export type NewRecipient = Mailbox & {
  kind: RecipientKind
  /** The `addressKey` of the address, for comparisons. */
  key: string
}

export type DecodedAttachment = {
  filename: string
  contentType: string
  contentId: string | null
  content: Buffer
}

/** A validated email, which satisfies all rules of this service. */
export type ReadEmail = {
  from: Mailbox
  replyTo: readonly string[]
  /** At least one, without duplicates, in the order of to, cc and bcc. */
  recipients: readonly NewRecipient[]
  /** With a template, its rendered parts are written here and to `html` and `text` later. */
  subject: string
  html: string | null
  text: string | null
  template: NonNullable<SendEmail['template']> | null
  headers: Readonly<Record<string, string>>
  attachments: readonly DecodedAttachment[]
  tags: readonly string[]
  metadata: Readonly<Record<string, string>>
  audienceId: string | null
  /** Only with an audience. */
  topicId: string | null
  trackOpens: boolean
  trackClicks: boolean
  /** Null: at once. */
  scheduledAt: Date | null
}

/** The media type of an attachment with an unknown file extension. */
const anyBytes = 'application/octet-stream'
const dayMs = 24 * 3_600_000

/** An error of a field. `isOfForm`: the published schema refuses it too (400); else it breaks a rule (422). */
export type EmailFault = ErrorDetail & { isOfForm: boolean }

/**
 * Validates an email that matches the schema of the contract, by the rules that a schema cannot express. Returns the
 * email, or all its errors with paths below `path`. Yields to the event loop while it decodes attachments.
 */
export async function readEmail(
  email: SendEmail,
  { now, path }: { now: Date; path: string },
): Promise<{ email: ReadEmail; faults: null } | { email: null; faults: EmailFault[] }> {
  const faults: EmailFault[] = []
  const fault: ReportFault = (field, message, isOfForm = false) =>
    void faults.push({ path: `${path}.${field}`, message, isOfForm })

  function mailboxes(field: RecipientKind | 'replyTo'): Mailbox[] {
    const given = email[field] ?? []
    const entries =
      typeof given === 'string' ? [[field, given] as const] : given.map((one, i) => [`${field}[${i}]`, one] as const)
    return entries.flatMap(([entryPath, text]) => mailboxOf(entryPath, text) ?? [])
  }

  function mailboxOf(field: string, text: string): Mailbox | null {
    const { mailbox, fault: message } = readMailbox(text)
    if (mailbox === null) fault(field, message, !hasMailboxForm(text))
    return mailbox
  }

  const from = mailboxOf('from', email.from)
  const named = { to: mailboxes('to'), cc: mailboxes('cc'), bcc: mailboxes('bcc') }
  const recipients = uniqueRecipients(named)
  if (recipients.length > emailLimits.recipients) {
    fault('to', `must be at most ${emailLimits.recipients} recipients, with those in cc and bcc`)
  }
  const replyTo = mailboxes('replyTo').map(writeMailbox)
  const content = readContent(email, fault)
  const headers = email.headers ?? {}
  const hasAudience = email.audienceId !== undefined
  for (const found of faultsOfHeaders(headers, { path: `${path}.headers`, hasAudience })) {
    faults.push({ ...found, isOfForm: false })
  }
  if (email.topicId !== undefined && !hasAudience) fault('topicId', 'needs audienceId too')
  const attachments = await readAttachments(email.attachments ?? [], fault)
  const scheduledAt = email.scheduledAt === undefined ? null : new Date(email.scheduledAt)
  const lateness = scheduledAt === null ? null : faultOfSchedule(scheduledAt, now)
  if (lateness !== null) fault('scheduledAt', lateness)

  if (from === null || faults.length > 0) return { email: null, faults }
  return {
    email: {
      from,
      replyTo,
      recipients,
      ...content,
      headers,
      attachments,
      metadata: email.metadata ?? {},
      tags: [...new Set(email.tags)],
      audienceId: email.audienceId ?? null,
      topicId: email.topicId ?? null,
      trackOpens: email.trackOpens ?? false,
      trackClicks: email.trackClicks ?? false,
      scheduledAt,
    },
    faults: null,
  }
}

/** Returns the content, or what it is to be made of. */
function readContent(email: SendEmail, fault: ReportFault): Pick<ReadEmail, 'subject' | 'html' | 'text' | 'template'> {
  const { subject, html = null, text = null, template } = email
  if (template !== undefined) {
    for (const [field, own] of Object.entries({ subject, html, text })) {
      if ((own ?? null) !== null) fault(field, 'must not be given beside template')
    }
    return { subject: '', html: null, text: null, template }
  }
  if (subject === undefined) fault('subject', 'is required, unless there is a template')
  else if (Buffer.byteLength(subject) > emailLimits.subjectOctets) {
    fault('subject', `must be at most ${emailLimits.subjectOctets} octets in UTF-8`)
  }
  if (html === null && text === null) fault('html', 'is needed, or text')
  for (const [field, content] of Object.entries({ html, text })) {
    if (content !== null && Buffer.byteLength(content) > emailLimits.contentBytes) {
      fault(field, `must be at most ${emailLimits.contentBytes} bytes in UTF-8`)
    }
  }
  return { subject: subject ?? '', html, text, template: null }
}

/** Returns the error of a scheduled time, or null. */
export function faultOfSchedule(at: Date, now: Date): string | null {
  const aheadMs = at.getTime() - now.getTime()
  if (aheadMs <= 0) return 'must be in the future'
  return aheadMs > emailLimits.scheduleDays * dayMs ? `must be at most ${emailLimits.scheduleDays} days ahead` : null
}

/** Returns each address once, in its first position. */
function uniqueRecipients(named: Readonly<Record<RecipientKind, readonly Mailbox[]>>): NewRecipient[] {
  const byKey = new Map<string, NewRecipient>()
  for (const kind of ['to', 'cc', 'bcc'] as const) {
    for (const mailbox of named[kind]) {
      const key = addressKey(mailbox.address)
      if (!byKey.has(key)) byKey.set(key, { ...mailbox, kind, key })
    }
  }
  return [...byKey.values()]
}

type ReportFault = (field: string, message: string, isOfForm?: boolean) => void

async function readAttachments(
  given: NonNullable<SendEmail['attachments']>,
  fault: ReportFault,
): Promise<DecodedAttachment[]> {
  // Checked before decoding, which needs as much memory again.
  const bytes = given.reduce((sum, { content }) => sum + sizeOfBase64(content), 0)
  if (bytes > emailLimits.attachmentBytes) {
    fault('attachments', `must be at most ${emailLimits.attachmentBytes} bytes in all`)
    return []
  }
  const contentIds = new Set<string>()
  const attachments: DecodedAttachment[] = []
  for (const [index, { filename, content, contentType, contentId = null }] of given.entries()) {
    if (contentId !== null && contentIds.has(contentId)) fault(`attachments[${index}].contentId`, 'is there already')
    if (contentId !== null) contentIds.add(contentId)
    // A body in base64 cannot have parts: RFC 2045 §6.4.
    if (/^multipart\//i.test(contentType ?? '')) fault(`attachments[${index}].contentType`, 'must not be multipart')
    const decoded = await decodeBase64(content)
    if (decoded === null) {
      const message = 'must be base64: padded, in one line, without a prefix such as "data:"'
      fault(`attachments[${index}].content`, message, true)
    } else {
      attachments.push({
        filename,
        contentType: contentType ?? mediaTypeOf(filename),
        contentId,
        content: decoded,
      })
    }
  }
  return attachments
}

/** Returns the media type that the end of a file name stands for; that of any bytes when it is not known. */
function mediaTypeOf(filename: string): string {
  // mime-types has the name from before RFC 6350.
  return /\.vcf$/i.test(filename) ? 'text/vcard' : lookup(filename) || anyBytes
}
