import type { ErrorCode } from '../../contract/errors.ts'

export type ErrorDetail = { path: string; message: string }

/**
 * A refusal a client can understand: a code of the contract's table and a sentence that says what to
 * do. Everything else that is thrown is a fault of ours and answers `internal_error`.
 */
export class DomainError extends Error {
  override name = 'DomainError'
  readonly code: ErrorCode
  readonly details: readonly ErrorDetail[]
  /** Seconds to wait before trying again, where waiting helps. */
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options: { details?: ErrorDetail[]; retryAfterSeconds?: number } = {}) {
    super(message)
    this.code = code
    this.details = options.details ?? []
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** What test and live keys share. Everything else has a mode. */
const shared: readonly string[] = ['audience', 'domain', 'subscriber']

/** The error for an object that does not exist, or that the key cannot see: of another account, or of the other mode. */
export function notFound(what: string, id: string): DomainError {
  const hint = shared.includes(what) ? '' : ' A test key finds what test keys made, a live key what live keys made.'
  return new DomainError('not_found', `There is no ${what} with the id "${id}" in this account.${hint}`)
}

/** The refusal of one field that has not the form the published schema asks for. */
export function invalidField(path: string, message: string): DomainError {
  return invalidRequest([{ path, message }])
}

/** The refusal of one field that has the form the schema asks for, by a rule the schema cannot state. */
export function brokenRule(path: string, message: string): DomainError {
  return brokenRules([{ path, message }])
}

/** Details told at most; more would only repeat. */
const maxDetails = 50
/** Faults named in the message at most. */
const maxSummed = 3
/** Names a client made up are cut to this many characters. */
const maxNameLength = 100

/** `validation_error` with a message that sums up `details`. */
export function invalidRequest(details: readonly ErrorDetail[]): DomainError {
  return refusalOf('validation_error', details)
}

/** `rule_violation` with a message that sums up `details`. */
export function brokenRules(details: readonly ErrorDetail[]): DomainError {
  return refusalOf('rule_violation', details)
}

function refusalOf(code: 'validation_error' | 'rule_violation', details: readonly ErrorDetail[]): DomainError {
  const told = details.slice(0, maxDetails).map(({ path, message }) => ({ path: cut(path), message }))
  const summary = told.slice(0, maxSummed).map(({ path, message }) => `${path}: ${message}`)
  const more = details.length - summary.length
  if (more > 0) summary.push(`and ${more} more`)
  return new DomainError(code, `The request is not valid: ${summary.join('; ')}.`, { details: told })
}

function cut(text: string): string {
  return text.length <= maxNameLength ? text : `${text.slice(0, maxNameLength)}…`
}

/**
 * A reason the process cannot start or a command cannot run, told to the operator in one line and
 * without a stack trace. The message says what to do.
 */
export class OperatorError extends Error {
  override name = 'OperatorError'
}

/** The refusal of a test key for what changes live sending. @param what Begins the sentence, such as `Making a contact active again`. */
export function liveKeyNeeded(what: string): DomainError {
  return new DomainError(
    'authentication_error',
    `${what} needs a live key, and the request carries a test key: use a live key.`,
  )
}
