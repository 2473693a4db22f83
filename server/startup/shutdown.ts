import { OperatorError } from '../shared/errors.ts'

/** Time to close everything after the deadline, if the database responds. Milliseconds. */
const closingMs = 4_500

export type Shutdown = {
  /** Time for work in flight. Milliseconds. */
  deadlineMs: number
  /** Stop functions that run in parallel. Each takes no more work and finishes what it has until the deadline. */
  parts: readonly ((deadlineMs: number) => Promise<unknown> | undefined)[]
  /** Closes everything else, after the parts have stopped or failed to. */
  closeRest: () => Promise<unknown>
}

/** Stops the service. Rejects with an OperatorError when the database no longer responds. */
export async function shutDown({ deadlineMs, parts, closeRest }: Shutdown): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(
      new OperatorError(
        'the database does not answer; stopped without it, and attempts that were not written are made again',
      ),
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
