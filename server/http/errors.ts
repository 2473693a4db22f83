import type { ErrorRequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { type ErrorBody, errorTable } from '../../contract/errors.ts'
import { DomainError } from '../shared/errors.ts'
import { requestIdOf } from './request-id.ts'
import { isUnavailable } from './unavailable.ts'

/** Seconds of `Retry-After` with status 429 or 503 when the error has none. */
const defaultRetryAfterSeconds = 1

/** Returns the error handler: the one place where an error becomes a response. */
export function answerErrors(logger: Logger): ErrorRequestHandler {
  return (error: unknown, req, res, _next) => {
    const refusal = refusalFor(error)
    if (refusal !== error) log(logger, { error, refusal, res })
    if (res.headersSent) {
      // A partial response must not look complete.
      req.socket.destroy()
      return
    }
    sendError(res, refusal)
  }
}

const refusals = new WeakMap<Response, DomainError>()

/** Returns the error that a response tells, or undefined when it tells none. */
export function refusalSentWith(res: Response): DomainError | undefined {
  return refusals.get(res)
}

/** Sends `error` as the contract describes it. */
function sendError(res: Response, error: DomainError): void {
  refusals.set(res, error)
  const { status } = errorTable[error.code]
  if (status === 401) res.setHeader('WWW-Authenticate', 'Bearer')
  const retryAfter = error.retryAfterSeconds ?? (status === 429 || status === 503 ? defaultRetryAfterSeconds : null)
  if (retryAfter !== null) res.setHeader('Retry-After', String(Math.ceil(retryAfter)))
  res.status(status).json(errorBodyOf(error, requestIdOf(res)))
}

export function errorBodyOf({ code, message, details }: DomainError, requestId: string): ErrorBody {
  return { error: { code, message, ...(details.length === 0 ? {} : { details: [...details] }), requestId } }
}

function refusalFor(error: unknown): DomainError {
  if (error instanceof DomainError) return error
  if (isBadEscape(error)) return badEscape()
  if (isUnavailable(error)) {
    return new DomainError('unavailable', 'The service cannot answer just now: try again in a moment.')
  }
  return new DomainError(
    'internal_error',
    'The service failed to answer: this is a fault of ours. Quote the request id when you report it.',
  )
}

/** Returns the error for a path with a `%` that does not begin a valid escape. */
export function badEscape(): DomainError {
  return new DomainError(
    'malformed_request',
    'The path of the request cannot be decoded: a "%" must be followed by two hexadecimal digits of UTF-8.',
  )
}

/** Returns true for the error that the router throws when it cannot decode a path parameter. */
function isBadEscape(error: unknown): boolean {
  return error instanceof URIError && 'status' in error
}

function log(logger: Logger, { error, refusal, res }: { error: unknown; refusal: DomainError; res: Response }): void {
  const fields = { err: error, requestId: requestIdOf(res) }
  if (refusal.code === 'internal_error') logger.error(fields, 'a request failed')
  else if (refusal.code === 'unavailable') logger.warn(fields, 'a request could not be answered just now')
}
