import { OperatorError } from './shared/errors.ts'

/** How long closing may take beyond the deadline with a database that answers. Milliseconds. */
const closingMs = 4_500

export type Shutdown = {
  /** For what is in flight. Milliseconds. */
  deadlineMs: number
  /** What takes no more work and finishes what it has until the deadline: side by side. */
  parts: readonly ((deadlineMs: number) => Promise<unknown> | undefined)[]
  /** Everything else, once the parts have stopped, or failed to. */
  closeRest: () => Promise<unknown>
}

/** Stops the service. Rejects, with an OperatorError, when the database does not answer any more. */
export async function shutDown({ deadlineMs, parts, closeRest }: Shutdown): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(
      new OperatorError('the database does not answer; ended without it, and what was not settled is made again'),
    )
  }, deadlineMs + closingMs)
  await Promise.race([close(), late.promise]).finally(() => clearTimeout(timer))

  async function close(): Promise<void> {
    try {
      await Promise.all(parts.map((stop) => stop(deadlineMs)))
    } finally {
      await closeRest()
    }
  }
}
