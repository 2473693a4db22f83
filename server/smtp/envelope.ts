import { isAscii } from 'node:buffer'
import { domainToASCII } from 'node:url'
import type { Conversation } from './transport.ts'

/** A message with its envelope addresses. */
export type Letter = Pick<Conversation, 'mailFrom' | 'recipients' | 'message'>

/** Why a server cannot take a message for a recipient, in the form of a reply. */
export type Unsendable = { code: number; enhanced: string; message: string }

export type Envelope = {
  /** The whole MAIL command, without the line end. */
  mail: string
  /** In the order of the recipients: the whole RCPT command, or why there is none. */
  recipients: readonly (string | Unsendable)[]
}

export type EnvelopeOptions = {
  /** True: also requests success notifications from servers with DSN (RFC 3461 §4.1). */
  successNotifications: boolean
}

const noMailbox: Unsendable = { code: 553, enhanced: '5.1.3', message: 'The address cannot be used in SMTP.' }
const notInternational: Unsendable = {
  code: 553,
  enhanced: '5.6.7',
  message: 'The mail server takes no addresses beyond ASCII.',
}
const notEightBit: Unsendable = { code: 554, enhanced: '5.6.3', message: 'The mail server takes no 8-bit messages.' }

/** A dot-string or quoted string, then a domain. Nothing that ends the path or the line. Source: RFC 5321 §4.1.2. */
const mailboxForm = /^(?:[^\s"<>@\p{Cc}]+|"(?:[^"\\\p{Cc}]|\\[\x20-\x7e])*")@[^\s"<>@\p{Cc}]+$/u

/**
 * Returns the MAIL and RCPT commands for a server with these extensions. Uses BODY=8BITMIME (RFC 6152), SIZE
 * (RFC 1870), SMTPUTF8 (RFC 6531) and the DSN parameters (RFC 3461) where the server offers them and they are needed.
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
      // The header is enough to identify a returned message.
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

/** Returns why this server cannot take the message for any recipient; null: it can. */
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
    // Reports from later servers then name the original recipient.
    ...(isAsciiText(address) ? [`ORCPT=rfc822;${xtext(address)}`] : []),
  ]
}

/** Encodes text as xtext. Source: RFC 3461 §4. */
function xtext(text: string): string {
  return text.replace(/[^\x21-\x2a\x2c-\x3c\x3e-\x7e]/g, (character) => {
    return `+${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`
  })
}

/** Returns the address with its domain in A-labels (RFC 5890 §2.3.2.1). The local part stays as it is. */
function asciiDomain(address: string): string {
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  if (at < 0 || isAsciiText(domain)) return address
  return `${address.slice(0, at)}@${domainToASCII(domain)}`
}

function isAsciiText(text: string): boolean {
  return !/\P{ASCII}/u.test(text)
}
