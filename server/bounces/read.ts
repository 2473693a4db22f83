import { headerOf } from './headers.ts'
import { allParts, inOrder, type Part, parseMime, textOf } from './mime.ts'
import { type Feedback, readFeedback } from './read-arf.ts'
import { type RecipientReport, readDeliveryStatus, readTypedAddress } from './read-dsn.ts'
import { isAutomaticAnswer, isFromDaemon, isFromMailer } from './report-author.ts'
import { isBounce, isQmailText, readBounceText, tellsOfFailure, textOfHtml } from './text-bounce.ts'

/** The content of a message that came back. */
export type Notification =
  | { kind: 'dsn'; recipients: readonly RecipientReport[]; original: OriginalMessage }
  | ({ kind: 'arf'; original: OriginalMessage } & Feedback)
  /** An out-of-office reply or a read receipt. It requires no action. */
  | { kind: 'auto-reply' }
  | { kind: 'unreadable'; reason: string }

/** The tokens of this service in the returned message. They are not verified yet. */
export type OriginalMessage = {
  /** The token in the header field `emailIdHeader`. */
  copyToken: string | null
  /** The return path of the message. */
  returnPath: string | null
  /** The token of the unsubscribe link, which also identifies the recipient. */
  unsubscribeToken: string | null
}

const copyTokenForm = /^x-postern-id[ \t]*:[ \t]*([\w-]{1,100})/im
/** The form of the receiving server, and that of a feedback report. Source: RFC 5965 §3.2. */
const returnPathForm = /^(?:return-path|original-mail-from)[ \t]*:[ \t]*<?(b\.\w{1,100}@[\w.-]{1,255})/im
const unsubscribeForm = /^list-unsubscribe[ \t]*:\s*<[^<>\s]{1,500}\/u\/([\w-]{1,1000})>/im

/** The readers in the order to try them: the most specific format first. */
const readers: readonly ((message: Message) => Notification | null)[] = [
  readDsn,
  readArf,
  readReceipt,
  readFailedRecipients,
  readQmail,
  readAnswer,
  readMangled,
  readLetter,
]

type Message = { root: Part; parts: readonly Part[] }

/**
 * Parses a delivery status notification (RFC 3464, RFC 6533), a feedback report (RFC 5965), an automatic reply
 * (RFC 3834) or another message that mail servers send back, also if it was forwarded or damaged. Accepts any bytes and
 * never throws. The result is untrusted: `factsOf` limits what it can change.
 */
export function readNotification(bytes: Buffer): Notification {
  const root = parseMime(bytes)
  const message = { root, parts: allParts(root) }
  for (const read of readers) {
    const notification = read(message)
    if (notification !== null) return notification
  }
  return { kind: 'unreadable', reason: reasonOf(message) }
}

function readDsn({ parts }: Message): Notification | null {
  const part = parts.find(({ type }) => type === 'message/delivery-status' || type === 'message/global-delivery-status')
  if (part === undefined) return null
  const recipients = readDeliveryStatus(textOf(part))
  // If the empty line before the report is missing, its fields were parsed as headers.
  return dsnOf(recipients.length > 0 ? recipients : readDeliveryStatus(textOfHeaders(part)), parts)
}

function readArf({ parts }: Message): Notification | null {
  const part = parts.find(({ type }) => type === 'message/feedback-report')
  return part === undefined ? null : arfOf(readFeedback(textOf(part)), parts)
}

/** Reads a notification that the message was read or deleted. Source: RFC 8098. */
function readReceipt({ parts }: Message): Notification | null {
  return parts.some(
    ({ type }) => type.endsWith('/disposition-notification') || type.endsWith('-disposition-notification'),
  )
    ? { kind: 'auto-reply' }
    : null
}

/** Reads the `X-Failed-Recipients` header of Exim and compatible servers. */
function readFailedRecipients(message: Message): Notification | null {
  const failed = message.root.headers
    .filter(({ name }) => name === 'x-failed-recipients')
    .flatMap(({ value }) => value.split(','))
    .flatMap(readTypedAddress)
  return failed.length === 0 ? null : dsnOf(readBounceText(letterOf(message), failed), message.parts)
}

function readQmail(message: Message): Notification | null {
  const letter = letterOf(message)
  return isQmailText(letter) ? dsnOf(readBounceText(letter), message.parts) : null
}

/** Reads the fields of a report in a part with another media type. */
function readMangled({ parts }: Message): Notification | null {
  for (const part of parts) {
    if (part.parts.length > 0) continue
    const text = textOf(part)
    if (/^(final|original)-recipient[ \t]*:/im.test(text)) {
      const dsn = dsnOf(readDeliveryStatus(text), parts)
      if (dsn !== null) return dsn
    }
    if (/^feedback-type[ \t]*:/im.test(text) && /^(user-agent|version)[ \t]*:/im.test(text)) {
      return arfOf(readFeedback(text), parts)
    }
  }
  return null
}

/**
 * Reads an automatic reply that is not from a mail server. It requires no action, unless it mentions a failure: then
 * it may be a bounce or a reply that quotes one, and is left for a person. Treating it as a bounce could suppress a
 * working address.
 */
function readAnswer(message: Message): Notification | null {
  const { headers } = message.root
  if (!isAutomaticAnswer(headers) || isFromDaemon(headers)) return null
  const report = readMangled(message)
  if (report?.kind === 'arf') return report
  if (report === null && !tellsOfFailure(headerOf(headers, 'subject') ?? '', letterOf(message))) {
    return { kind: 'auto-reply' }
  }
  return { kind: 'unreadable', reason: 'It tells of a failure, but as an automatic answer, and not of a mail server.' }
}

function readLetter(message: Message): Notification | null {
  const { headers } = message.root
  const letter = letterOf(message)
  // A reply of a person, for example about undelivered parcels, is not a bounce.
  if (!isFromMailer(headers) || !isBounce(headerOf(headers, 'subject') ?? '', letter)) return null
  return dsnOf(readBounceText(letter), message.parts)
}

function dsnOf(recipients: readonly RecipientReport[], parts: readonly Part[]): Notification | null {
  return recipients.length === 0 ? null : { kind: 'dsn', recipients, original: originalIn(parts) }
}

function arfOf(feedback: Feedback | null, parts: readonly Part[]): Notification | null {
  if (feedback === null) return null
  // Microsoft has the recipient in a header of the reported message.
  const inside = parts.flatMap(({ headers }) => readTypedAddress(headerOf(headers, 'x-hmxmroriginalrecipient') ?? ''))
  return { kind: 'arf', ...feedback, recipients: [...feedback.recipients, ...inside], original: originalIn(parts) }
}

/**
 * Finds the tokens of the returned message: in the headers of parts, then in texts, which may quote anything. The
 * headers of the whole message belong to the notification. They are searched only if it has no parts.
 */
function originalIn(parts: readonly Part[]): OriginalMessage {
  const texts = [
    ...parts.slice(1).map(textOfHeaders),
    ...parts.filter(isLeaf).map(textOf),
    ...parts.slice(0, 1).filter(isLeaf).map(textOfHeaders),
  ]
  const find = (form: RegExp) => texts.map((text) => form.exec(text)?.[1]).find((token) => token !== undefined) ?? null
  return { copyToken: find(copyTokenForm), returnPath: find(returnPathForm), unsubscribeToken: find(unsubscribeForm) }
}

function isLeaf({ parts }: Part): boolean {
  return parts.length === 0
}

function textOfHeaders({ headers }: Part): string {
  return headers.map(({ name, value }) => `${name}: ${value}`).join('\n')
}

/** Returns the first text for people. Later parts may belong to the returned message. */
function letterOf({ root }: Message): string {
  const parts = inOrder(root)
  const plain = parts.find(({ type, parts: inside }) => type === 'text/plain' && inside.length === 0)
  if (plain !== undefined && textOf(plain).trim() !== '') return textOf(plain)
  const html = parts.find(({ type }) => type === 'text/html')
  return html === undefined ? '' : textOfHtml(textOf(html))
}

function reasonOf({ root, parts }: Message): string {
  if (parts.some(({ type }) => type.endsWith('delivery-status')))
    return 'It is a delivery status notification that names no recipient.'
  if (parts.some(({ type }) => type === 'message/feedback-report')) return 'It is a feedback report without a type.'
  if (root.headers.length === 0) return 'It has no headers.'
  return 'It is neither a delivery status notification nor a feedback report.'
}
