import { domainToASCII } from 'node:url'

/**
 * Role addresses, which belong to no email. Every mail server has the first two (RFC 5321 §4.5.1, RFC 2142 §4). `fbl`
 * is for feedback loops, which send all reports to one registered address.
 */
const roles: readonly string[] = ['postmaster', 'abuse', 'fbl']

/** Returns the host of a role address in lower case and A-labels. Null: it is not a role address. */
export function hostOfRole(address: string): string | null {
  const at = address.lastIndexOf('@')
  if (at === -1 || !roles.includes(address.slice(0, at).toLowerCase())) return null
  return domainToASCII(address.slice(at + 1)) || null
}
