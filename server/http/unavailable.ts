import { codeOf } from '../lib/error-codes.ts'

/** The database refuses or closes the connection: class 08, and these. */
const connectionStates: readonly string[] = ['57P01', '57P02', '57P03', '25006']
/** The transaction was rolled back and may succeed when it is tried again. */
const transientStates: readonly string[] = ['40001', '40P01', '55P03', '57014']
const systemErrors: readonly string[] = [
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]

/** Errors of the pool and the driver that have no code. */
const messages =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end|driver has already been destroyed)/

/**
 * Returns true when `error` says that the database is not available, or that it rolled back the work because of a
 * conflict. Nothing is wrong with the request then, and it may succeed when it is tried again.
 *
 * Source: PostgreSQL documentation, appendix A, "PostgreSQL Error Codes".
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return (
    systemErrors.includes(code) ||
    connectionStates.includes(code) ||
    transientStates.includes(code) ||
    // Connection exceptions and insufficient resources.
    /^(08|53)[0-9A-Z]{3}$/.test(code) ||
    messages.test(error.message)
  )
}
