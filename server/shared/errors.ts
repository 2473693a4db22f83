import type { ErrorCode } from '../../contract/errors.ts'

export type ErrorDetail = { path: string; message: string }

/**
 * An error that the client can act on: a code of the table in contract/errors.ts and a message that says what to do.
 * Any other error that is thrown is a fault of the server and becomes `internal_error`.
 */
export class DomainError extends Error {
  override name = 'DomainError'
  readonly code: ErrorCode
  readonly details: readonly ErrorDetail[]
  /** Seconds to wait before trying again; undefined when waiting does not help. */
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options: { details?: ErrorDetail[]; retryAfterSeconds?: number } = {}) {
    super(message)
    this.code = code
    this.details = options.details ?? []
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** Resources that test and live keys share. All others have a mode. */
const sharedResources: readonly string[] = ['audience', 'domain', 'segment', 'subscriber', 'template', 'topic']

/** Returns the error for an object that does not exist, or that belongs to another account or the other mode. */
export function notFound(what: string, id: string): DomainError {
  const isShared = sharedResources.includes(what)
  const hint = isShared ? '' : ' A test key finds what test keys made, a live key what live keys made.'
  return new DomainError('not_found', `There is no ${what} with the id "${id}" in this account.${hint}`)
}

/** Returns `validation_error` for one field that does not match the published schema. */
export function invalidField(path: string, message: string): DomainError {
  return invalidRequest([{ path, message }])
}

/** Returns `rule_violation` for one field that matches the schema but breaks a rule that a schema cannot express. */
export function brokenRule(path: string, message: string): DomainError {
  return brokenRules([{ path, message }])
}

/** Most entries in `details`; more would only repeat. */
const maxDetails = 50
/** Most entries of `details` in the message. */
const maxSummed = 3
/** Characters of a path in `details`; longer paths, with names the client made up, are cut. */
const maxNameLength = 100

/** Returns `validation_error` with a message that summarizes `details`. */
export function invalidRequest(details: readonly ErrorDetail[]): DomainError {
  return refusalOf('validation_error', details)
}

/** Returns `rule_violation` with a message that summarizes `details`. */
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
 * The reason why the process cannot start or a command cannot run. The operator sees its message on one line, without
 * a stack trace. The message says what to do.
 */
export class OperatorError extends Error {
  override name = 'OperatorError'
}

/**
 * Returns the error for a test key that tries to change live sending.
 *
 * @param what The start of the sentence, such as `Making a contact active again`.
 */
export function liveKeyNeeded(what: string): DomainError {
  return new DomainError(
    'authentication_error',
    `${what} needs a live key, and the request carries a test key: use a live key.`,
  )
}
