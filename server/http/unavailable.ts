/** The database refuses or breaks the connection: class 08, and these. */
const connectionStates: readonly string[] = ['57P01', '57P02', '57P03', '25006']
/** The work was undone and may succeed when it is tried again. */
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

/** What the pool and the driver say in words only. */
const inWords =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end|driver has already been destroyed)/

/**
 * Whether `error` says that the database cannot be used just now, or that it undid the work for the
 * sake of another's: nothing is wrong with the request, and it may succeed when it is tried again.
 *
 * Source: PostgreSQL documentation, appendix A, "PostgreSQL Error Codes".
 */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return (
    systemErrors.includes(code) ||
    connectionStates.includes(code) ||
    transientStates.includes(code) ||
    // Connection exceptions and insufficient resources.
    /^(08|53)[0-9A-Z]{3}$/.test(code) ||
    inWords.test(error.message)
  )
}
