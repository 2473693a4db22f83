import { AddressNotAllowedError } from './address-guard.ts'
import type { FailureReason } from './exchange.ts'

/** Why an exchange failed, for the customer: a reason for programs, a sentence for people. */
export type Failure = { reason: FailureReason; message: string }

/** The failure of an exchange that took too long. */
export function timedOut(timeoutMs: number): Failure {
  return {
    reason: 'timed-out',
    message: `The endpoint did not answer completely within ${timeoutMs / 1000} seconds. Answer first, then work.`,
  }
}

const tlsMessages: Record<string, string> = {
  CERT_HAS_EXPIRED: 'its certificate has expired: renew it',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: use one of a public authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'its chain of certificates ends in a self-signed one: use one of a public authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its chain of certificates is incomplete: serve the intermediate certificates too',
  UNABLE_TO_GET_ISSUER_CERT: 'its chain of certificates is incomplete: serve the intermediate certificates too',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the authority that issued its certificate is not a public one',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name than the one in the URL',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS on this port: check the port, or whether the URL should be http',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'it has no TLS version in common with us: enable TLS 1.2 or 1.3',
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: 'it refused the handshake',
}

/** Judges what a socket or the HTTP client threw. Says nothing of addresses, files or our own code. */
export function failureOf(thrown: unknown): Failure {
  const error = rootOf(thrown)
  const code = codeOf(error)
  if (error instanceof AddressNotAllowedError) {
    return {
      reason: 'address-not-allowed',
      message: 'The host of the URL leads to an address that is not public, and deliveries there are not allowed.',
    }
  }
  if (code in tlsMessages) return tls(tlsMessages[code] as string)
  if (code.startsWith('ERR_TLS') || code.startsWith('ERR_SSL') || code.startsWith('CERT_') || code === 'EPROTO') {
    return tls('the handshake failed: check the certificate and the TLS versions it offers')
  }
  if (code.startsWith('HPE_') || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return { reason: 'invalid-answer', message: 'The endpoint’s answer is not valid HTTP.' }
  }
  switch (code) {
    case 'ENOTFOUND':
    case 'ENODATA':
      return { reason: 'name-not-found', message: 'The host name of the URL was not found. Check its spelling and DNS.' }
    case 'EAI_AGAIN':
    case 'ESERVFAIL':
    case 'ETIMEOUT':
      return { reason: 'name-not-found', message: 'The name servers of the URL’s host did not answer. Check its DNS.' }
    case 'ECONNREFUSED':
      return {
        reason: 'connection-refused',
        message: 'The connection was refused. Check that the endpoint runs and listens on the port of the URL.',
      }
    case 'ECONNRESET':
    case 'EPIPE':
    case 'UND_ERR_SOCKET':
      return { reason: 'connection-lost', message: 'The endpoint closed the connection before its answer was complete.' }
    case 'UND_ERR_HEADERS_OVERFLOW':
      return { reason: 'invalid-answer', message: 'The headers of the endpoint’s answer are too large.' }
    default:
      return { reason: 'unreachable', message: 'The endpoint could not be reached. Check that it is on line.' }
  }
}

function tls(why: string): Failure {
  return { reason: 'tls', message: `No secure connection to the endpoint: ${why}.` }
}

/** Of several attempted addresses, the first tells why. */
function rootOf(thrown: unknown): unknown {
  return thrown instanceof AggregateError && thrown.errors.length > 0 ? thrown.errors[0] : thrown
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
