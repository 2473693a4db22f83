import { isAscii } from 'node:buffer'
import { domainToASCII } from 'node:url'
import type { Conversation } from './transport.ts'

/** A message with where it goes; what a server is to be asked for it. */
export type Letter = Pick<Conversation, 'mailFrom' | 'recipients' | 'message'>

/** Why a server cannot be given a message for a recipient, as if it had said so. */
export type Unsendable = { code: number; enhanced: string; message: string }

export type Envelope = {
  /** Whole, without the end of the line. */
  mail: string
  /** In the order of the recipients: a whole RCPT, or why there is none. */
  recipients: readonly (string | Unsendable)[]
}

export type EnvelopeOptions = {
  /** Also asks to be told of success, where the server can (RFC 3461 §4.1). */
  successNotifications: boolean
}

const noMailbox: Unsendable = { code: 553, enhanced: '5.1.3', message: 'The address cannot be used in SMTP.' }
const notInternational: Unsendable = {
  code: 553,
  enhanced: '5.6.7',
  message: 'The mail server takes no addresses beyond ASCII.',
}
const notEightBit: Unsendable = { code: 554, enhanced: '5.6.3', message: 'The mail server takes no 8-bit messages.' }

/** RFC 5321 §4.1.2: a dot-string or a quoted string, then a domain; nothing that ends the path or the line. */
const mailboxForm = /^(?:[^\s"<>@\p{Cc}]+|"(?:[^"\\\p{Cc}]|\\[\x20-\x7e])*")@[^\s"<>@\p{Cc}]+$/u

/**
 * What is said to a server with these extensions: BODY=8BITMIME (RFC 6152), SIZE (RFC 1870), SMTPUTF8
 * (RFC 6531) and the parameters of notifications (RFC 3461), each where it is offered and needed.
 */
export function envelopeOf(
  { mailFrom: sender, recipients, message }: Letter,
  extensions: ReadonlyMap<string, string>,
  options: EnvelopeOptions,
): Envelope {
  const mailFrom = asciiDomain(sender)
  const needs = needsOf(mailFrom, message)
  const takesUtf8 = extensions.has('SMTPUTF8')
  const obstacle = obstacleOf(message, needs, extensions)
  const addresses = recipients.map(({ address }) => asciiDomain(address))
  const usesUtf8 = takesUtf8 && (needs.utf8 || !addresses.every(isAsciiText))
  const notifications = extensions.has('DSN')

  return {
    mail: [
      `MAIL FROM:<${mailFrom}>`,
      ...(extensions.has('SIZE') ? [`SIZE=${message.length}`] : []),
      ...(needs.eightBit && extensions.has('8BITMIME') ? ['BODY=8BITMIME'] : []),
      ...(usesUtf8 ? ['SMTPUTF8'] : []),
      // Of a message that comes back, the header tells which it was.
      ...(notifications ? ['RET=HDRS'] : []),
    ].join(' '),
    recipients: addresses.map((address) => {
      if (!mailboxForm.test(address)) return noMailbox
      if (obstacle !== null) return obstacle
      if (!takesUtf8 && !isAsciiText(address)) return notInternational
      return [`RCPT TO:<${address}>`, ...(notifications ? notify(address, options) : [])].join(' ')
    }),
  }
}

type Needs = { eightBit: boolean; utf8: boolean }

function needsOf(mailFrom: string, message: Buffer): Needs {
  const eightBit = !isAscii(message)
  return { eightBit, utf8: !isAsciiText(mailFrom) || (eightBit && !isAscii(headerOf(message))) }
}

function headerOf(message: Buffer): Buffer {
  const end = message.indexOf('\r\n\r\n')
  return end < 0 ? message : message.subarray(0, end)
}

/** What keeps this server from taking the message for anybody. */
function obstacleOf(message: Buffer, needs: Needs, extensions: ReadonlyMap<string, string>): Unsendable | null {
  const limit = Number(extensions.get('SIZE') ?? 0)
  if (limit > 0 && message.length > limit) {
    return {
      code: 552,
      enhanced: '5.3.4',
      message: `The message has ${message.length} bytes, and the mail server takes ${limit}.`,
    }
  }
  if (needs.utf8 && !extensions.has('SMTPUTF8')) return notInternational
  if (needs.eightBit && !extensions.has('8BITMIME') && !extensions.has('SMTPUTF8')) return notEightBit
  return null
}

function notify(address: string, { successNotifications }: EnvelopeOptions): string[] {
  return [
    ...(successNotifications ? ['NOTIFY=SUCCESS,FAILURE,DELAY'] : []),
    // Tells, wherever the message goes on to, for whom it was.
    ...(isAsciiText(address) ? [`ORCPT=rfc822;${xtext(address)}`] : []),
  ]
}

/** RFC 3461 §4. */
function xtext(text: string): string {
  return text.replace(/[^\x21-\x2a\x2c-\x3c\x3e-\x7e]/g, (character) => {
    return `+${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}

/** The domain in the form that every server knows (RFC 5890 §2.3.2.1); the local part as it is. */
function asciiDomain(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  if (at < 0 || isAsciiText(domain)) return address
  return `${address.slice(0, at)}@${domainToASCII(domain)}`
}

function isAsciiText(text: string): boolean {
  return !/\P{ASCII}/u.test(text)
}
