import { domainToASCII } from 'node:url'

/**
 * What makes two addresses the same: everything but letter case, in the local part too. RFC 5321
 * §2.4 lets a host tell `Ada@` from `ada@`, but none that matters does, and two subscribers for one
 * mailbox would get everything twice. Dots and `+tags` are kept: what they mean differs by host. An
 * internationalised address is the same however its characters are composed (RFC 6532 §3.1) and whether
 * its domain is written in U-labels or A-labels.
 */
export function addressKey(address: string): string {
  if (isAscii.test(address)) return address.toLowerCase()
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1)
  return `${address.slice(0, at).normalize('NFC').toLowerCase()}@${asciiDomain(domain) ?? domain.toLowerCase()}`
}

const isAscii = /^[ -~]*$/

/** Letters, digits and hyphens inside: RFC 1123 §2.1. */
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** Of a domain in A-labels: RFC 1035 §2.3.4, without the lengths of the labels' dots. */
const maxDomainLength = 253

/**
 * A domain in lower case and A-labels (RFC 5890 §2.3.2.1); null when it is none that mail could go to: a
 * single label, a number at its end, characters no host has.
 */
export function asciiDomain(domain: string): string | null {
  // What the conversion would decode, or take for the end of a host.
  if (/[\s%/\\:?#@[\]]/.test(domain)) return null
  const name = isAscii.test(domain) && !/xn--/i.test(domain) ? domain.toLowerCase() : domainToASCII(domain)
  const labels = name.split('.')
  if (labels.length < 2 || name.length > maxDomainLength || !labels.every((part) => label.test(part))) return null
  return /^\d+$/.test(labels.at(-1) ?? '') ? null : name
}
