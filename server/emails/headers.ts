import { emailLimits } from '../../contract/email-content.ts'
import { isReservedHeader } from '../message/headers.ts'
import type { ErrorDetail } from '../shared/errors.ts'

/** A token of RFC 9110 §5.6.2, which programs accept as a name. RFC 5322 §2.2 allows more, which is not used. */
const name = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/
/** Control characters except tabs, and line separators. A value with a line break would inject a second header. */
const control = /[^\P{Cc}\t]|[\p{Zl}\p{Zp}]/u

/**
 * Returns the errors in the custom headers of an email. `List-Unsubscribe` is allowed unless the email belongs to an
 * audience: there the service sets it (RFC 8058).
 *
 * @param path Path of the headers in the request.
 */
export function faultsOfHeaders(
  headers: Readonly<Record<string, string>>,
  { path, hasAudience }: { path: string; hasAudience: boolean },
): ErrorDetail[] {
  const entries = Object.entries(headers).map(([key, value]) => ({ key, value, octets: octetsOf(key, value) }))
  if (entries.length > emailLimits.headers) {
    return [{ path, message: `must be at most ${emailLimits.headers} headers` }]
  }
  if (entries.reduce((sum, { octets }) => sum + octets, 0) > emailLimits.headersOctets) {
    return [{ path, message: `must be at most ${emailLimits.headersOctets} octets together` }]
  }
  const seen = new Set<string>()
  return entries.flatMap((header) => {
    const lower = header.key.toLowerCase()
    const message = seen.has(lower) ? 'is there already, in other letter case' : faultOf(header, hasAudience)
    seen.add(lower)
    return message === null ? [] : [{ path: `${path}.${header.key}`, message }]
  })
}

type Header = { key: string; value: string; octets: number }

function faultOf({ key, value, octets }: Header, hasAudience: boolean): string | null {
  if (!name.test(key)) return 'is not the name of a header: use letters, digits, hyphens and underscores'
  if (isReservedHeader(key))
    return 'is written by this service, from the fields of the email, or by mail servers: leave it out'
  if (hasAudience && /^list-unsubscribe(-post)?$/i.test(key)) {
    return 'is written by this service for an email to an audience: leave it out'
  }
  if (control.test(value)) return 'must not contain line breaks or other control characters'
  return octets > emailLimits.headerOctets
    ? `must be at most ${emailLimits.headerOctets} octets long with its name`
    : null
}

/** Returns the length of the header line without its end. */
function octetsOf(key: string, value: string): number {
  return Buffer.byteLength(key) + ': '.length + Buffer.byteLength(value)
}
