import MailComposer from 'nodemailer/lib/mail-composer'
import type MimeNode from 'nodemailer/lib/mime-node'
import type { Clock } from '../lib/clock.ts'
import { type DkimSigner, signMessage } from './dkim.ts'
import { fileNameParameters } from './file-names.ts'
import {
  emailIdHeader,
  type FieldLines,
  field,
  givenField,
  type HeaderAddress,
  isHeaderName,
  isReservedHeader,
  mailbox,
  mailboxField,
  mailboxOf,
  textField,
  unsubscribeFields,
} from './headers.ts'
import { trackHtml } from './links.ts'
import type { MailTokens } from './mail-tokens.ts'
import { renderMessage } from './render.ts'

/** All input of a message. */
export type MessageParts = {
  email: {
    id: string
    accountId: string
    /** With its angle brackets. */
    messageId: string
    /** The From header, as the client gave it. */
    sender: string
    subject: string
    createdAt: Date
    scheduledAt: Date | null
    audienceId: string | null
    /** The topic that its link to unsubscribe leaves. Null: it leaves everything. */
    topicId: string | null
    trackOpens: boolean
    trackClicks: boolean
  }
  content: {
    replyTo: readonly string[]
    headers: Readonly<Record<string, string>>
    html: string | null
    text: string | null
    attachments: readonly MessageAttachment[]
  }
  /** All recipients of the email. */
  recipients: readonly { position: number; kind: 'to' | 'cc' | 'bcc'; name: string | null; address: string }[]
  /** Null: not signed. */
  signer: DkimSigner | null
}

export type MessageAttachment = {
  filename: string
  contentType: string
  /** The id by which the HTML refers to the file; null: it is not shown inside the HTML. */
  contentId: string | null
  content: Buffer
}

export type Composer = {
  /**
   * Returns the message as sent over SMTP: signed, with CRLF line ends and without Bcc.
   *
   * @param only The position of the recipient of a personal copy; null: one copy for all recipients, without anything
   * that identifies one of them.
   */
  compose(parts: MessageParts, only: number | null): Promise<Buffer>
}

export type ComposerOptions = {
  tokens: MailTokens
  /** Returns the public URL of this service, without a slash at the end. */
  publicUrl: () => string
  /** Gives the time of the signature. */
  clock: Clock
}

/** Returns whether each recipient gets a copy of their own, with links that identify the recipient. */
export function isPersonal(email: Pick<MessageParts['email'], 'audienceId' | 'trackOpens' | 'trackClicks'>): boolean {
  return email.audienceId !== null || email.trackOpens || email.trackClicks
}

export function createComposer({ tokens, publicUrl, clock }: ComposerOptions): Composer {
  function unsubscribeUrl({ email, recipients }: MessageParts, position: number): string | null {
    const address = recipients.find((recipient) => recipient.position === position)?.address
    if (email.audienceId === null || address === undefined) return null
    const { id: emailId, accountId, topicId } = email
    const from = { emailId, position, accountId, address, topicId: topicId ?? undefined }
    return `${publicUrl()}/u/${tokens.unsubscribe(from)}`
  }

  function personalHtml({ email, content }: MessageParts, position: number): string {
    const recipient = { emailId: email.id, position }
    const html = content.html ?? ''
    if (html === '' || !(email.trackOpens || email.trackClicks)) return html
    return trackHtml(html, {
      linkTo: email.trackClicks ? (link) => `${publicUrl()}/t/c/${tokens.click({ ...recipient, link })}` : null,
      pixelUrl: email.trackOpens ? `${publicUrl()}/t/o/${tokens.pixel(recipient)}` : null,
      ownUrl: publicUrl(),
    })
  }

  return {
    async compose(parts, only) {
      const { email, content, signer } = parts
      const shown = shownRecipients(parts, only)
      const html = only === null ? (content.html ?? '') : personalHtml(parts, only)
      const url = only === null ? null : unsubscribeUrl(parts, only)
      const root = new MailComposer({
        messageId: email.messageId,
        // The date of the email, not of the attempt: every copy has the same.
        date: email.scheduledAt ?? email.createdAt,
        text: withCrlf(content.text ?? ''),
        html: withCrlf(html),
        attachments: content.attachments.map(attachmentOf),
        boundaryPrefix: '=_postern',
        disableFileAccess: true,
        disableUrlAccess: true,
      }).compile()
      nameFiles(root)
      const fields = [
        mailboxField('From', [mailboxOf(email.sender)]),
        mailboxField('To', mailboxes(shown, 'to')),
        mailboxField('Cc', mailboxes(shown, 'cc')),
        mailboxField('Reply-To', content.replyTo.map(mailboxOf)),
        textField('Subject', email.subject),
        ...givenFields(content.headers, url !== null),
        ...(url === null ? [] : unsubscribeFields(url)),
        field(emailIdHeader, tokens.copy({ emailId: email.id, position: only })),
      ]
      const message = renderMessage(
        fields.filter((lines) => lines !== null),
        root,
      )
      return signer === null ? message : signMessage(message, signer, clock.now())
    },
  }
}

/**
 * Returns the recipients to name in the header. Members of an audience must not see each other: each copy names only
 * its own recipient, as To.
 */
function shownRecipients({ email, recipients }: MessageParts, only: number | null): MessageParts['recipients'] {
  if (email.audienceId === null) return recipients
  return recipients.flatMap((one) => (one.position === only ? [{ ...one, kind: 'to' as const }] : []))
}

function mailboxes(recipients: MessageParts['recipients'], wanted: 'to' | 'cc'): HeaderAddress[] {
  return recipients.filter(({ kind }) => kind === wanted).map(({ name, address }) => mailbox(name ?? '', address))
}

/** Returns the header fields of the client, without reserved ones. */
function givenFields(headers: Readonly<Record<string, string>>, hasUnsubscribe: boolean): FieldLines[] {
  return Object.entries(headers)
    .filter(([name]) => isHeaderName(name) && !isReservedHeader(name))
    .filter(([name]) => !hasUnsubscribe || !/^list-unsubscribe(-post)?$/i.test(name))
    .map(([name, value]) => givenField(name, value))
}

/** Converts all line ends to CRLF, because servers treat other line ends differently. Source: RFC 5321 §2.3.8. */
function withCrlf(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n')
}

function attachmentOf({ filename, contentType, contentId, content }: MessageAttachment) {
  return {
    filename,
    contentType: typeOfAttachment(contentType),
    contentTransferEncoding: 'base64',
    content,
    ...(contentId !== null && { cid: contentId }),
  }
}

/** Sets the file names of the parts. The library would put encoded words into quotes, which is invalid. */
function nameFiles(node: MimeNode): void {
  const { filename } = node
  if (typeof filename === 'string') {
    for (const [key, parameter] of [
      ['Content-Type', 'name'],
      ['Content-Disposition', 'filename'],
    ] as const) {
      const value = [String(node.getHeader(key)), ...fileNameParameters(parameter, filename)].join(';\r\n ')
      node.setHeader(key, { prepared: true, value })
    }
  }
  for (const child of node.childNodes) nameFiles(child)
}

const token = "[\\w!#$%&'*+.^`{|}~-]+"
const mediaType = new RegExp(`^${token}/${token}(?:; ?${token}=${token})*$`)
/** Longer than the API accepts. Characters. */
const maxTypeLength = 255

/**
 * Returns the media type of an attachment. `message/*` and `multipart/*` become `application/octet-stream`: they must
 * not be base64-encoded, and would be read as parts of this message. Removes `name` parameters, because the file name
 * is set separately. Source: RFC 2046 §5, §5.2.1.
 */
function typeOfAttachment(contentType: string): string {
  const isFile = contentType.length <= maxTypeLength && mediaType.test(contentType)
  if (!isFile || /^(?:multipart|message)\//i.test(contentType)) return 'application/octet-stream'
  const [type = '', ...parameters] = contentType.split(';')
  return [type, ...parameters.filter((parameter) => !/^ ?name(?:\*[^=]*)?=/i.test(parameter))].join(';')
}
