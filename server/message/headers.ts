import { domainToASCII, domainToUnicode } from 'node:url'
import { encodeWord, foldLines } from 'nodemailer/lib/mime-funcs'

/**
 * The field that carries the token of the return path, so that a report which lost the address it came
 * back to still tells of which email it speaks.
 */
export const emailIdHeader = 'X-Postern-Id'

/** What this service writes itself, or what only the servers on the way may write. Lower case. */
const reservedNames: ReadonlySet<string> = new Set([
  'from',
  'sender',
  'to',
  'cc',
  'bcc',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'mime-version',
  'return-path',
  'received',
  'received-spf',
  'authentication-results',
  'dkim-signature',
  'domainkey-signature',
  'delivered-to',
  'x-original-to',
  emailIdHeader.toLowerCase(),
])

const reservedPrefixes: readonly string[] = ['content-', 'resent-', 'arc-']

/** Whether a header field is not the sender's to give, whatever its letter case. */
export function isReservedHeader(name: string): boolean {
  const key = name.toLowerCase()
  return reservedNames.has(key) || reservedPrefixes.some((prefix) => key.startsWith(prefix))
}

/** Whether `name` can be that of a header field. Source: RFC 5322 §2.2. */
export function isHeaderName(name: string): boolean {
  return /^[!-9;-~]+$/.test(name)
}

/** A name and an address, as a header shows them. */
export type HeaderAddress = { name: string; address: string }

/**
 * The mailbox a text stands for: an address alone, or a name, in double quotes where it has anything special,
 * and an address in angle brackets. Not just any text of a header: the API has read it before.
 */
export function mailboxOf(text: string): HeaderAddress {
  const [, inQuotes, plain, address] = /^(?:"((?:[^"\\]|\\.)*)"|([^"<]*)) <(.+)>$/s.exec(text) ?? []
  if (address === undefined) return mailbox('', text)
  return mailbox(inQuotes?.replace(/\\(.)/gs, '$1') ?? plain ?? '', address)
}

export function mailbox(name: string, address: string): HeaderAddress {
  // Folding a run of spaces could leave a line of nothing else.
  return { name: name.replace(/\s+/g, ' ').trim(), address }
}

/** A header field as it stands in a message, in lines, without a line end at the end. */
export type FieldLines = string

/** Beyond it, what has no space to be folded at would make a line longer than 998 characters. */
const maxWordLength = 900

/** A field of mailboxes, such as To; null: there are none. */
export function mailboxField(key: string, mailboxes: readonly HeaderAddress[]): FieldLines | null {
  return mailboxes.length === 0 ? null : field(key, mailboxes.map(written).join(', '))
}

function written({ name, address }: HeaderAddress): string {
  const spec = addressSpec(address)
  if (name !== '') return `${phrase(name)} <${spec}>`
  // Its local part is in quotes, where a comma would be read as the end of the mailbox.
  return spec.includes('"') ? `<${spec}>` : spec
}

/**
 * A display name: words, or in quotes, or in encoded words, which must not stand in quotes. One that only looks
 * like an encoded word is encoded too, or it would be shown as what it stands for.
 *
 * Source: RFC 5322 §3.2.5, RFC 2047 §5 (3).
 */
function phrase(name: string): string {
  if (/^[\w ]*$/.test(name)) return name
  if (/^[ -~]*$/.test(name) && !name.includes('=?')) return `"${name.replace(/["\\]/g, '\\$&')}"`
  return encoded(name)
}

/**
 * An address as a header has it: the domain in A-labels, unless what stands before it needs SMTPUTF8 anyway. Not
 * just any text: the API has read it before.
 */
function addressSpec(address: string): string {
  const safe = address.replace(/[\p{Cc}\p{Zl}\p{Zp}<>]+/gu, ' ').trim()
  const at = safe.lastIndexOf('@')
  const local = safe.slice(0, at)
  const domain = safe.slice(at + 1)
  const inForm = /^[ -~]*$/.test(local) ? domainToASCII(domain) : domainToUnicode(domain)
  return `${local}@${inForm === '' ? domain : inForm}`
}

/** A field whose value is any text, such as the subject. */
export function textField(key: string, text: string): FieldLines {
  // What looks like an encoded word would be shown as what it stands for.
  const plain = /^[!-~]+(?: [!-~]+)*$/.test(text) && !text.includes('=?') && !hasLongWord(text)
  return field(key, plain ? text : encoded(text))
}

/**
 * A field that the sender gave, with a meaning this service does not know: left as it is but for the
 * spaces, which become one each, as folding may make of them what it likes.
 */
export function givenField(key: string, value: string): FieldLines {
  const line = value.replace(/[ \t\r\n]+/g, ' ').replace(/^ | $/g, '')
  return field(key, /^[ -~]*$/.test(line) && !hasLongWord(line) ? line : encoded(line))
}

/** How the mailbox provider offers to unsubscribe, with one click. Source: RFC 2369 §3.2, RFC 8058 §3.1. */
export function unsubscribeFields(url: string): FieldLines[] {
  return [field('List-Unsubscribe', `<${url}>`), field('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click')]
}

/** @param value As it is to stand; folded at spaces. */
export function field(key: string, value: string): FieldLines {
  return foldLines(`${key}: ${value}`, lineLength)
}

const lineLength = 76

function hasLongWord(text: string): boolean {
  return text.length > maxWordLength && text.split(' ').some((word) => word.length > maxWordLength)
}

/** As encoded words, of the shorter encoding. Source: RFC 2047. */
function encoded(text: string): string {
  const letters = text.replace(/[^a-zA-Z]/g, '').length
  return encodeWord(text, letters * 2 > text.length ? 'Q' : 'B', 52)
}
