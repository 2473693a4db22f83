import { errors } from 'undici'
import { codeOf } from '../../lib/error-codes.ts'
import { AddressNotAllowedError, NameNotResolvedError } from './address-guard.ts'
import { lengthFaultOf, maxInterimAnswers } from './response-start.ts'

export type FailureReason =
  | 'invalid-url'
  | 'invalid-request'
  | 'address-not-allowed'
  | 'name-not-found'
  | 'connection-refused'
  | 'connection-lost'
  | 'timed-out'
  | 'tls'
  | 'invalid-answer'
  | 'unreachable'

/**
 * How far an exchange came: nothing was sent; something was sent and may have been processed; or the status of a
 * response had arrived.
 */
export type Stage = 'before-sending' | 'while-sending' | 'after-sending'

/** Why an exchange failed: a code for programs and a sentence for the customer. */
export type ExchangeFailure = { reason: FailureReason; message: string }

const timeoutAdvice: Record<Stage, string> = {
  'before-sending': 'no connection to the endpoint. Check its DNS and its firewall.',
  'while-sending': 'no answer from the endpoint. Answer first, then do the work.',
  'after-sending': 'the endpoint did not finish its answer. Answer with a short body, or none.',
}

/** Returns the failure of an exchange that exceeded the time limit. */
export function timedOut(timeoutMs: number, stage: Stage): ExchangeFailure {
  return { reason: 'timed-out', message: `Timed out after ${timeoutMs / 1000} seconds: ${timeoutAdvice[stage]}` }
}

/** The failure of an exchange that the service aborted. */
export const brokenOff: ExchangeFailure = {
  reason: 'connection-lost',
  message: 'The exchange was broken off before it ended, because the service stopped.',
}

/** The failure of an exchange with an invalid URL, or one that is not HTTP. The API accepts no such URL. */
export const invalidUrl: ExchangeFailure = {
  reason: 'invalid-url',
  message: 'The URL of the webhook cannot be posted to. Set another, such as https://example.com/hooks.',
}

const lossByStage: Record<Stage, string> = {
  'before-sending': 'The endpoint closed the connection before the request could be sent.',
  'while-sending': 'The endpoint closed the connection without an answer.',
  'after-sending': 'The endpoint closed the connection before its answer was complete.',
}

/** Returns the failure of an exchange whose connection the endpoint closed or reset. */
export function connectionLost(stage: Stage): ExchangeFailure {
  return { reason: 'connection-lost', message: lossByStage[stage] }
}

const unknownAuthority =
  'its certificate is not of a public authority, or the intermediate certificates are not served with it'

const tlsFaults = new Map([
  ['CERT_HAS_EXPIRED', 'its certificate has expired: renew it'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is self-signed: use one of a public authority'],
  [
    'SELF_SIGNED_CERT_IN_CHAIN',
    'its chain of certificates ends in a self-signed one: use a certificate of a public authority',
  ],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', unknownAuthority],
  ['UNABLE_TO_GET_ISSUER_CERT', unknownAuthority],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', unknownAuthority],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name than the one in the URL'],
  [
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'it does not speak TLS on this port: check the port, or whether the URL should begin with http://',
  ],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'it does not speak TLS on this port: check the port of the URL'],
  ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'it offers no TLS version from 1.2 on: enable TLS 1.2 or 1.3'],
  ['ERR_SSL_UNSUPPORTED_PROTOCOL', 'it offers no TLS version from 1.2 on: enable TLS 1.2 or 1.3'],
  ['ERR_SSL_TLSV1_UNRECOGNIZED_NAME', 'it does not know the name in the URL'],
])

/** Messages of the parser llhttp about a response, and their meaning for the endpoint. The first match counts. */
const parserFaults: readonly [RegExp, string][] = [
  [/Duplicate Content-Length/, 'it has more than one Content-Length'],
  [/can't be present with/, 'it has both Content-Length and Transfer-Encoding'],
  [/Content-Length/, 'its Content-Length is not a number'],
  [/Transfer-Encoding/, 'its Transfer-Encoding is not valid'],
  [/chunk/i, 'its chunked body is not valid'],
  [/Invalid header|header value|header token/, 'one of its headers is malformed'],
  [/Missing expected (CR|LF)|CR except/, 'its lines do not all end with CR LF'],
]

/**
 * Classifies an error of the socket or of the HTTP client. The result names no addresses, files or code of ours.
 *
 * @param beginning The first bytes of the response. Empty: none arrived.
 */
export function failureOf(thrown: unknown, { stage, beginning }: { stage: Stage; beginning: Buffer }): ExchangeFailure {
  const error = rootOf(thrown)
  if (error instanceof AddressNotAllowedError) return { reason: 'address-not-allowed', message: error.message }
  if (error instanceof NameNotResolvedError) return { reason: 'name-not-found', message: nameFault(error) }
  if (error instanceof errors.HTTPParserError) {
    const [, fault] = parserFaults.find(([pattern]) => pattern.test(error.message)) ?? []
    return invalidAnswer(fault ?? 'check that the port of the URL speaks HTTP, not HTTPS')
  }
  const code = codeOf(error)
  const tlsFault = tlsFaults.get(code)
  if (tlsFault !== undefined) return tls(tlsFault)
  if (/^(ERR_TLS|ERR_SSL|CERT_|EPROTO)/.test(code)) {
    return tls('the handshake failed. Check the certificate and the TLS versions it offers')
  }
  switch (code) {
    case 'ECONNREFUSED':
      return {
        reason: 'connection-refused',
        message: 'The connection was refused. Check that the endpoint runs and listens on the port of the URL.',
      }
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
      return { reason: 'timed-out', message: `Timed out: ${timeoutAdvice[stage]}` }
    case 'UND_ERR_DESTROYED':
      return brokenOff
    case 'UND_ERR_INVALID_ARG':
      return {
        reason: 'invalid-request',
        message: 'The event cannot be put into a request because of a fault of the service. Ask its operator.',
      }
    case 'UND_ERR_HEADERS_OVERFLOW':
      return invalidAnswer('its headers are larger than 16 KiB')
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH': {
      // undici reports the same error when the parser rejects a header that comes after a Content-Length.
      const fault = stage === 'while-sending' ? (lengthFaultOf(beginning) ?? 'one of its headers is malformed') : null
      return fault === null ? connectionLost(stage) : invalidAnswer(fault)
    }
    case 'ECONNRESET':
    case 'EPIPE':
      return connectionLost(stage)
    case 'UND_ERR_SOCKET':
      return refusalOf(error) ?? connectionLost(stage)
    default:
      return { reason: 'unreachable', message: 'The endpoint could not be reached. Check that it is on line.' }
  }
}

function tls(why: string): ExchangeFailure {
  return { reason: 'tls', message: `No secure connection to the endpoint: ${why}.` }
}

function invalidAnswer(why: string): ExchangeFailure {
  return { reason: 'invalid-answer', message: `The endpoint’s answer is not valid HTTP: ${why}.` }
}

function nameFault({ isMissing }: NameNotResolvedError): string {
  return isMissing
    ? 'The host name of the URL was not found. Check its spelling and its DNS records.'
    : 'The name servers of the URL’s host did not answer. Check its DNS.'
}

/** Returns the underlying error. If several addresses were tried, the first error explains the failure. */
function rootOf(thrown: unknown): unknown {
  const error = thrown instanceof Error && thrown.cause instanceof AggregateError ? thrown.cause : thrown
  return error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error
}

/** The failure of an exchange whose endpoint sends too many interim responses (1xx) before the final one. */
export const tooManyInterimAnswers = invalidAnswer(`it sent more than ${maxInterimAnswers} interim answers`)

/** Recognizes two errors of undici: it rejects a 100 as a "bad response", and a 101 as a "bad upgrade". */
function refusalOf(error: unknown): ExchangeFailure | null {
  if (!(error instanceof Error)) return null
  if (error.message === 'bad response') return tooManyInterimAnswers
  if (error.message !== 'bad upgrade') return null
  return invalidAnswer('it sent 101 Switching Protocols, which was not asked for')
}
