/** Errors of the process that no request and no worker has handled. */
export type ProcessFaults = {
  /** Unhandled promise rejections since the process started. */
  readonly rejections: number
  /** Aborted by an uncaught exception. The process must then stop. */
  readonly uncaught: AbortSignal
}

/** For tests and tools, which handle the errors of their process themselves. */
export const noProcessFaults: ProcessFaults = { rejections: 0, uncaught: new AbortController().signal }

/**
 * Replaces, for the rest of the process, how Node handles unhandled rejections and uncaught exceptions. Calls `report`
 * for each.
 *
 * An unhandled rejection is counted and the process goes on. It belongs to one piece of work, whose transaction is
 * rolled back; if the process ended, one request could end all others. A loop that has stopped shows in `/readyz`.
 *
 * An uncaught exception in a callback may have left shared state inconsistent. The process shuts down in order and
 * fails.
 */
export function watchProcessFaults(report: (error: unknown, what: string) => void): ProcessFaults {
  const uncaught = new AbortController()
  let rejections = 0
  process.on('unhandledRejection', (reason) => {
    rejections++
    report(reason, 'a rejected promise was not handled; the process goes on')
  })
  process.on('uncaughtException', (error) => {
    report(error, 'an exception was not caught; the process ends')
    uncaught.abort()
  })
  return {
    get rejections() {
      return rejections
    },
    uncaught: uncaught.signal,
  }
}
