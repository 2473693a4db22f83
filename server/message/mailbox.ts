import { mailboxForm } from '../../contract/fields.ts'
import { brokenRule, invalidField } from '../shared/errors.ts'
import { asciiDomain } from './address.ts'

/** A sender or recipient of an email. */
export type Mailbox = {
  /** The display name, without quotes; null: none. */
  name: string | null
  /** The address as given, without unnecessary quotes in its local part. */
  address: string
  /** The domain of the address in lower case and A-labels. */
  domain: string
}

/** A mailbox, or its fault as the rest of a sentence: "must …" or "has …". */
export type ReadMailbox = { mailbox: Mailbox; fault: null } | { mailbox: null; fault: string }

/** RFC 5321 §4.5.3.1.1 and §4.5.3.1.3, without the angle brackets of a path. */
const maxLocalOctets = 64
const maxAddressOctets = 254

/** RFC 5322 §3.2.3 with RFC 6532 §3.2: beyond ASCII, every character except separators and control characters. */
const atext = /[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\p{ASCII}\p{Cc}\p{Cs}\p{Z}]/u
const dotAtom = new RegExp(`^(?:${atext.source})+(?:\\.(?:${atext.source})+)*$`, 'u')
/** Allows dots in names, the obsolete form of a phrase, because `Dr. Ada` is common. Source: RFC 5322 §4.1. */
const plainName = new RegExp(`^(?:${atext.source}|\\.)+(?: (?:${atext.source}|\\.)+)*$`, 'u')
const atomAtStart = new RegExp(`^(?:${atext.source}|\\.)+`, 'u')
/** Line breaks, other control characters and lone surrogates. */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u
const quotedAtStart = /^"((?:[^"\\]|\\.)*)"/su
const blanksAtStart = /^\p{Z}+/u

/**
 * Parses one mailbox: an address, or a name and an address in angle brackets. Refuses comments, groups, source routes
 * and address literals: RFC 5322 has them, but email to people does not use them.
 *
 * Source: RFC 5322 §3.4 (name-addr, addr-spec), RFC 5321 §4.1.2 (Mailbox) and §4.5.3.1 (lengths), RFC 6531
 * §3.3 and RFC 6532 §3.2 (internationalised).
 */
export function readMailbox(text: string): ReadMailbox {
  const given = text.trim()
  if (unprintable.test(given)) return refused('must not contain line breaks or other control characters')
  if (!given.endsWith('>')) return readAddrSpec(given, null)
  const { name, rest, fault } = readName(given)
  return fault === null ? readAddrSpec(rest.slice(1, -1), name) : refused(fault)
}

/** Returns whether text matches the published schema of a mailbox, even if it is not valid. */
export function hasMailboxForm(text: string): boolean {
  return mailboxForm.test(text)
}

/**
 * Returns the address in a field of a request, without its name. Throws `validation_error` when the text is not a
 * mailbox, or `rule_violation` when it still matches the published schema.
 */
export function readAddress(text: string, path: string): string {
  const { mailbox, fault } = readMailbox(text)
  if (mailbox === null) throw hasMailboxForm(text) ? brokenRule(path, fault) : invalidField(path, fault)
  return mailbox.address
}

/** The inverse of `readMailbox`. */
export function writeMailbox({ name, address }: Pick<Mailbox, 'name' | 'address'>): string {
  if (name === null) return address
  return `${plainName.test(name) ? name : quoted(name)} <${address}>`
}

type ReadName = { name: string | null; rest: string; fault: null } | { name: null; rest: ''; fault: string }

/** Parses the display name; `rest` begins with the `<` after it. */
function readName(given: string): ReadName {
  const words: string[] = []
  let rest = given
  for (;;) {
    rest = rest.replace(blanksAtStart, '')
    if (rest.startsWith('<')) {
      const name = words.join(' ')
      return { name: name.trim() === '' ? null : name, rest, fault: null }
    }
    const inQuotes = quotedAtStart.exec(rest)
    const found = inQuotes ?? atomAtStart.exec(rest)
    if (found === null) return { name: null, rest: '', fault: faultOfName(rest) }
    words.push(inQuotes === null ? found[0] : unquoted(inQuotes[1] ?? ''))
    rest = rest.slice(found[0].length)
  }
}

function faultOfName(rest: string): string {
  const [character = ''] = rest
  if (character === ',' || character === ';' || character === ':') return oneEach
  if (character === '"') return 'has a name whose quotation marks do not end'
  if (character === '(') return noComments
  return `has a "${character}" in its name: put the name in double quotes, as in "Ada (Sales)" <ada@example.com>`
}

const oneEach = 'must be one address: give several as a list, and put a name with a "," or ":" in double quotes'
const noComments = 'must not contain comments in parentheses'

function readAddrSpec(given: string, name: string | null): ReadMailbox {
  if (given.startsWith('@')) {
    return refused(given.includes(':') ? 'must not contain a route' : 'must have something before the @')
  }
  const inQuotes = quotedAtStart.exec(given)
  const at = inQuotes === null ? given.indexOf('@') : inQuotes[0].length
  const before = given.slice(0, at)
  if (at < 1 || given[at] !== '@') return refused(faultWithoutAt(given))
  const local = inQuotes === null ? before : canonicalLocal(unquoted(inQuotes[1] ?? ''))
  if (local === '""') return refused('must have something before the @')
  if (inQuotes === null && !dotAtom.test(local)) return refused(faultOfLocal(local))

  const domain = given.slice(at + 1)
  if (domain.startsWith('[')) return refused('must have a domain name after the @, not an address literal')
  const ascii = asciiDomain(domain)
  if (ascii === null) return refused(faultOfDomain(domain))
  const localOctets = Buffer.byteLength(local)
  if (localOctets > maxLocalOctets) return refused(`must have at most ${maxLocalOctets} octets before the @`)
  if (localOctets + 1 + Math.max(ascii.length, Buffer.byteLength(domain)) > maxAddressOctets) {
    return refused(`must be at most ${maxAddressOctets} octets long`)
  }
  return { mailbox: { name, address: `${local}@${domain}`, domain: ascii }, fault: null }
}

function faultWithoutAt(given: string): string {
  if (given.includes('<') || given.includes('>'))
    return 'must have its address in one pair of angle brackets at the end'
  return 'must be an address such as ada@example.com'
}

function faultOfLocal(local: string): string {
  if (/[<>]/.test(local)) return 'must have its address in one pair of angle brackets at the end'
  if (/[,;:]/.test(local)) return oneEach
  if (/[()]/.test(local)) return noComments
  if (/^\.|\.$|\.\./.test(local))
    return 'must have no dot at the beginning or end of what stands before the @, nor two in a row'
  return 'has characters before the @ that are allowed only in double quotes'
}

function faultOfDomain(domain: string): string {
  if (/[,;]/.test(domain)) return oneEach
  if (/[()]/.test(domain)) return noComments
  return 'must have a domain name such as example.com after the @'
}

/** Quotes a local part only if needed. Both forms mean the same mailbox: RFC 5321 §4.1.2. */
function canonicalLocal(local: string): string {
  return dotAtom.test(local) ? local : quoted(local)
}

function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

function unquoted(inside: string): string {
  return inside.replaceAll(/\\(.)/gsu, '$1')
}

function refused(fault: string): ReadMailbox {
  return { mailbox: null, fault }
}
