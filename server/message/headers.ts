import { domainToASCII, domainToUnicode } from 'node:url'
import { encodeWord, foldLines } from 'nodemailer/lib/mime-funcs'

/**
 * The field with the token of the return path. A report that no longer has the return path itself can be matched to
 * its email by it.
 */
export const emailIdHeader = 'X-Postern-Id'

/** Fields that this service writes, or that only mail servers on the way may write. Lower case. */
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

/** Returns whether clients must not set a header field. Case-insensitive. */
export function isReservedHeader(name: string): boolean {
  const key = name.toLowerCase()
  return reservedNames.has(key) || reservedPrefixes.some((prefix) => key.startsWith(prefix))
}

/** Returns whether `name` is a valid name of a header field. Source: RFC 5322 §2.2. */
export function isHeaderName(name: string): boolean {
  return /^[!-9;-~]+$/.test(name)
}

/** A display name and an address. */
export type HeaderAddress = { name: string; address: string }

/**
 * Parses a mailbox: an address alone, or a name (quoted if it has special characters) and an address in angle
 * brackets. The API has validated the text before; this does not parse arbitrary headers.
 */
export function mailboxOf(text: string): HeaderAddress {
  const [, inQuotes, plain, address] = /^(?:"((?:[^"\\]|\\.)*)"|([^"<]*)) <(.+)>$/s.exec(text) ?? []
  if (address === undefined) return mailbox('', text)
  return mailbox(inQuotes?.replace(/\\(.)/gs, '$1') ?? plain ?? '', address)
}

export function mailbox(name: string, address: string): HeaderAddress {
  // Folding a run of spaces could produce a line of spaces only.
  return { name: name.replace(/\s+/g, ' ').trim(), address }
}

/** A folded header field, without a line end after its last line. */
export type FieldLines = string

/** Longer words are encoded: they cannot be folded, and could make a line longer than 998 characters. */
const maxWordLength = 900

/** Returns a field of mailboxes, such as To; null: there are no mailboxes. */
export function mailboxField(key: string, mailboxes: readonly HeaderAddress[]): FieldLines | null {
  return mailboxes.length === 0 ? null : field(key, mailboxes.map(written).join(', '))
}

function written({ name, address }: HeaderAddress): string {
  const spec = addressSpec(address)
  if (name !== '') return `${phrase(name)} <${spec}>`
  // Some parsers read a comma in a quoted local part as the end of the mailbox.
  return spec.includes('"') ? `<${spec}>` : spec
}

/**
 * Writes a display name: as plain words, quoted, or as encoded words, which must not be quoted. A name that looks like
 * an encoded word is encoded too; else it would be shown decoded.
 *
 * Source: RFC 5322 §3.2.5, RFC 2047 §5 (3).
 */
function phrase(name: string): string {
  if (/^[\w ]*$/.test(name)) return name
  if (/^[ -~]*$/.test(name) && !name.includes('=?')) return `"${name.replace(/["\\]/g, '\\$&')}"`
  return encoded(name)
}

/**
 * Writes an address for a header: with its domain in A-labels, unless the local part needs SMTPUTF8 anyway. The API
 * has validated the address before.
 */
function addressSpec(address: string): string {
  const safe = address.replace(/[\p{Cc}\p{Zl}\p{Zp}<>]+/gu, ' ').trim()
  const at = safe.lastIndexOf('@')
  const local = safe.slice(0, at)
  const domain = safe.slice(at + 1)
  const inForm = /^[ -~]*$/.test(local) ? domainToASCII(domain) : domainToUnicode(domain)
  return `${local}@${inForm === '' ? domain : inForm}`
}

/** Returns a field with any text as its value, such as Subject. */
export function textField(key: string, text: string): FieldLines {
  // Text that looks like an encoded word would be shown decoded.
  const plain = /^[!-~]+(?: [!-~]+)*$/.test(text) && !text.includes('=?') && !hasLongWord(text)
  return field(key, plain ? text : encoded(text))
}

/**
 * Returns a field that the client set. Its value stays as it is, except that white space is reduced to single spaces,
 * because folding does not preserve it.
 */
export function givenField(key: string, value: string): FieldLines {
  const line = value.replace(/[ \t\r\n]+/g, ' ').replace(/^ | $/g, '')
  return field(key, /^[ -~]*$/.test(line) && !hasLongWord(line) ? line : encoded(line))
}

/** Returns the fields for unsubscribing with one click. Source: RFC 2369 §3.2, RFC 8058 §3.1. */
export function unsubscribeFields(url: string): FieldLines[] {
  return [field('List-Unsubscribe', `<${url}>`), field('List-Unsubscribe-Post', 'List-Unsubscribe=One-Click')]
}

/**
 * Returns a folded header field.
 *
 * @param value The encoded value. It is folded at spaces.
 */
export function field(key: string, value: string): FieldLines {
  return foldLines(`${key}: ${value}`, lineLength)
}

const lineLength = 76

function hasLongWord(text: string): boolean {
  return text.length > maxWordLength && text.split(' ').some((word) => word.length > maxWordLength)
}

/** Encodes text as encoded words, in the shorter of the two encodings. Source: RFC 2047. */
function encoded(text: string): string {
  const letters = text.replace(/[^a-zA-Z]/g, '').length
  return encodeWord(text, letters * 2 > text.length ? 'Q' : 'B', 52)
}
