import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { maxDomainLength } from '../../contract/domains.ts'

/** Letters, digits and inner hyphens: RFC 1123 §2.1. */
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Special-use top-level names, which cannot be registered in the public DNS: RFC 6761, RFC 6762, RFC 7686, RFC 9476 and
 * ICANN's `internal`.
 */
const specialTopLevels = ['alt', 'arpa', 'internal', 'invalid', 'local', 'localhost', 'onion']

export type ReadName = { name: string; fault: null } | { name: null; fault: string }

/**
 * Returns a domain name as it is stored: lower case, A-labels (RFC 5890 §2.3.2.1), no trailing dot. For a name that
 * cannot send email, returns the error, which begins with "must".
 */
export function readDomainName(text: string): ReadName {
  const given = text.replace(/[.。]$/u, '')
  // `domainToASCII` would read these characters as a path, a port or an encoding, and drop them.
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
