import { emailStatus } from '../../contract/email-status.ts'
import { eventTypeNames } from '../../contract/event-types.ts'
import { emailAddress, timeInput } from '../../contract/fields.ts'
import { idPrefixes, idSuffix } from '../../contract/ids.ts'
import { modes } from '../../contract/mode.ts'
import { grants } from '../../contract/permissions.ts'
import { suppressionReason } from '../../contract/suppressions.ts'
import { maskSecrets } from '../secrets/masking.ts'

/*
 * Values that cannot hold a secret or a part of an email, because of their form. Each function returns what is kept of
 * a text, or null.
 */

/** Longest text that is looked at: a mailbox. UTF-16 code units. */
const maxLength = 500

/** Words of the contract that a body or a query can have. */
const words: ReadonlySet<string> = new Set<string>([
  ...eventTypeNames,
  ...grants,
  ...modes,
  ...suppressionReason.options,
  ...emailStatus.options,
  ...['active', 'unsubscribed', 'enabled', 'disabled', 'pending', 'succeeded', 'failed', 'canceled', 'aborted'],
  ...['asc', 'desc', 'hour', 'day', 'domain', 'tag', 'webhook', 'true', 'false'],
])

const prefixes: ReadonlySet<string> = new Set(Object.values(idPrefixes))

/** A word of the contract, an identifier or a time. */
export function closedValue(text: string): string | null {
  if (text.length > maxLength) return null
  return words.has(text) || isId(text) || timeInput.safeParse(text).success ? text : null
}

/** The same in a query, where there are also limits, statuses and cursors. */
export function closedInQuery(name: string, text: string): string | null {
  if (text.length > maxLength) return null
  if (name === 'cursor') return idSuffix.test(text) ? text : null
  return /^(?:\d{1,3}|[1-5]xx)$/.test(text) ? text : closedValue(text)
}

function isId(text: string): boolean {
  const at = text.lastIndexOf('_')
  return at > 0 && prefixes.has(text.slice(0, at)) && idSuffix.test(text.slice(at + 1))
}

/** An email address. Of `Ada <ada@example.com>`, the address. */
export function closedAddress(text: string): string | null {
  if (text.length > maxLength) return null
  const address = text.endsWith('>') ? text.slice(text.lastIndexOf('<') + 1, -1) : text
  // Letters and digits before the `@` may be a key.
  return maskSecrets(address) === address && emailAddress.safeParse(address).success ? address : null
}

const domainName = /^(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z]{2,63}$/i

/** The name of a domain: labels and dots. */
export function closedDomain(text: string): string | null {
  return text.length <= 253 && domainName.test(text) ? text : null
}

/** Scheme, host and port of an http or https URL. */
export function closedOrigin(text: string): string | null {
  if (text.length > 2_048 || !URL.canParse(text)) return null
  const { protocol, hostname, host } = new URL(text)
  const isHost = hostname === 'localhost' || domainName.test(hostname) || /^[\d.]+$|^\[/.test(hostname)
  return isHost && hostname.length <= 253 && /^https?:$/.test(protocol) ? `${protocol}//${host}/…` : null
}
