import { domainToASCII } from 'node:url'

/**
 * Mailboxes that are of no email. Every server that takes mail has the first two (RFC 5321 §4.5.1, RFC 2142 §4);
 * feedback loops send all their reports to one address, which is registered with them.
 */
const roles: readonly string[] = ['postmaster', 'abuse', 'fbl']

/** The host of an address that names such a mailbox: lower case, as A-labels. Null: it names none. */
export function hostOfRole(address: string): string | null {
  const at = address.lastIndexOf('@')
  if (at === -1 || !roles.includes(address.slice(0, at).toLowerCase())) return null
  return domainToASCII(address.slice(at + 1)) || null
}
