import { domainToASCII } from 'node:url'

/**
 * Returns the key by which addresses are compared. It ignores letter case, also in the local part: RFC 5321 §2.4 lets
 * a host distinguish `Ada@` from `ada@`, but no important host does, and two subscribers for one mailbox would get
 * everything twice. It keeps dots and `+tags`, because their meaning differs by host. Internationalised addresses are
 * compared in one Unicode normal form (RFC 6532 §3.1) and with their domain in A-labels.
 */
export function addressKey(address: string): string {
  if (isAscii.test(address)) return address.toLowerCase()
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  return `${address.slice(0, at).normalize('NFC').toLowerCase()}@${asciiDomain(domain) ?? domain.toLowerCase()}`
}

/** Returns what the keys begin with of the addresses that begin with `text`. */
export function addressPrefixes(text: string): string[] {
  // The domain of a whole internationalised address has another form than its beginning.
  return [...new Set([text.normalize('NFC').toLowerCase(), addressKey(text)])]
}

const isAscii = /^[ -~]*$/

/** Letters and digits, with hyphens between them. Source: RFC 1123 §2.1. */
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** Maximum characters of a domain in A-labels: the 255 octets of RFC 1035 §2.3.4 as text. */
const maxDomainLength = 253

/**
 * Returns a domain in lower case and A-labels (RFC 5890 §2.3.2.1). Null: it cannot receive mail, because it has a
 * single label, a numeric last label, or characters that host names cannot have.
 */
export function asciiDomain(domain: string): string | null {
  // Characters that the conversion would decode, or read as the end of a host.
  if (/[\s%/\\:?#@[\]]/.test(domain)) return null
  const name = isAscii.test(domain) && !/xn--/i.test(domain) ? domain.toLowerCase() : domainToASCII(domain)
  const labels = name.split('.')
  if (labels.length < 2 || name.length > maxDomainLength || !labels.every((part) => label.test(part))) return null
  return /^\d+$/.test(labels.at(-1) ?? '') ? null : name
}
