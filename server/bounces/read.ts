import { type RecipientReport, readDeliveryStatus, readTypedAddress } from './delivery-status.ts'
import { type Feedback, readFeedback } from './feedback.ts'
import { headerOf } from './headers.ts'
import { allParts, inOrder, type Part, parseMime, textOf } from './mime.ts'
import { isAutomaticAnswer, isFromDaemon, isFromMailer } from './report-author.ts'
import { isBounce, isQmailText, readBounceText, tellsOfFailure, textOfHtml } from './text-bounce.ts'

/** What a message that came back says. */
export type Notification =
  | { kind: 'dsn'; recipients: readonly RecipientReport[]; original: OriginalMessage }
  | ({ kind: 'arf'; original: OriginalMessage } & Feedback)
  /** Of somebody on holiday, or that has been read: nothing follows from it. */
  | { kind: 'auto-reply' }
  | { kind: 'unreadable'; reason: string }

/** What the message that came back carries of what this service wrote into it; not verified yet. */
export type OriginalMessage = {
  /** See `emailIdHeader`. */
  copyToken: string | null
  /** The return path it was sent from. */
  returnPath: string | null
  /** Of its unsubscribe link, which names the recipient too. */
  unsubscribeToken: string | null
}

const copyTokenForm = /^x-postern-id[ \t]*:[ \t]*([\w-]{1,100})/im
/** As the receiving server wrote it down, and as a feedback report tells of it. Source: RFC 5965 §3.2. */
const returnPathForm = /^(?:return-path|original-mail-from)[ \t]*:[ \t]*<?(b\.\w{1,100}@[\w.-]{1,255})/im
const unsubscribeForm = /^list-unsubscribe[ \t]*:\s*<[^<>\s]{1,500}\/u\/([\w-]{1,1000})>/im

/** How what came back is tried to be read, in order: the more it says of itself, the sooner. */
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
 * Reads a delivery status notification (RFC 3464, RFC 6533), a feedback report (RFC 5965), an automatic reply
 * (RFC 3834) or what else mail servers send back: also where it was forwarded, or broken on its way. Takes
 * any bytes and never throws. Nothing of it is to be believed but for whom it can harm.
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
  // Without the empty line in front of it, the report reads like headers.
  return dsnOf(recipients.length > 0 ? recipients : readDeliveryStatus(textOfHeaders(part)), parts)
}

function readArf({ parts }: Message): Notification | null {
  const part = parts.find(({ type }) => type === 'message/feedback-report')
  return part === undefined ? null : arfOf(readFeedback(textOf(part)), parts)
}

/** That it has been read, or deleted. Source: RFC 8098. */
function readReceipt({ parts }: Message): Notification | null {
  return parts.some(
    ({ type }) => type.endsWith('/disposition-notification') || type.endsWith('-disposition-notification'),
  )
    ? { kind: 'auto-reply' }
    : null
}

/** Exim's, and of servers that do as it does. */
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

/** The fields of a report in a part that does not say it is one. */
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
 * What a program has answered that is no mail server: nothing, if it plainly is somebody's note. One that tells of
 * a failure may be a bounce, or a note that quotes one; believed, it could cost the address that is written to.
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
  // A person who writes back about undelivered parcels is none.
  if (!isFromMailer(headers) || !isBounce(headerOf(headers, 'subject') ?? '', letter)) return null
  return dsnOf(readBounceText(letter), message.parts)
}

function dsnOf(recipients: readonly RecipientReport[], parts: readonly Part[]): Notification | null {
  return recipients.length === 0 ? null : { kind: 'dsn', recipients, original: originalIn(parts) }
}

function arfOf(feedback: Feedback | null, parts: readonly Part[]): Notification | null {
  if (feedback === null) return null
  // Microsoft tells it inside the message it reports.
  const inside = parts.flatMap(({ headers }) => readTypedAddress(headerOf(headers, 'x-hmxmroriginalrecipient') ?? ''))
  return { kind: 'arf', ...feedback, recipients: [...feedback.recipients, ...inside], original: originalIn(parts) }
}

/**
 * Wherever its headers are: those of a part, or in a text, which can quote anything. The headers of the whole
 * are of the message that tells of it, unless there is nothing but them and a text.
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

/** What it says to people, at its beginning: what stands further behind may be the message that came back. */
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
