import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { maxDomainLength } from '../../contract/domains.ts'

/** Letters, digits and hyphens inside: RFC 1123 §2.1. */
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Names that are no one's in the public DNS, or not meant for it: RFC 6761, RFC 6762, RFC 7686, RFC 9476 and the ICANN's `internal`. */
const specialTopLevels = ['alt', 'arpa', 'internal', 'invalid', 'local', 'localhost', 'onion']

export type ReadName = { name: string; fault: null } | { name: null; fault: string }

/**
 * A domain name as it is kept: lower case, A-labels (RFC 5890 §2.3.2.1), without the dot at its end. The
 * fault is what "must …" goes on with, where it is none that mail could be sent from.
 */
export function readDomainName(text: string): ReadName {
  const given = text.replace(/[.。]$/u, '')
  // It would read them as a path, a port or an encoding, and drop them.
  const name = /[/:%\\?#@[\]]/.test(given) ? '' : domainToASCII(given)
  const labels = name.split('.')
  const top = labels.at(-1) ?? ''
  if (isIP(name) !== 0) return refused('must be a domain name, not an address')
  if (labels.length < 2 || !labels.every((part) => label.test(part)) || /^\d+$/.test(top)) {
    return refused('must be a domain name such as example.com')
  }
  if (name.length > maxDomainLength) return refused(`must be at most ${maxDomainLength} characters as A-labels (xn--…)`)
  if (specialTopLevels.includes(top)) return refused(`must not end in .${top}, which is not in the public DNS`)
  return { name, fault: null }
}

function refused(fault: string): ReadName {
  return { name: null, fault }
}
