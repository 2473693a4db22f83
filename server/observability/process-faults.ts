import { Counter, type Registry } from 'prom-client'

/** Faults of the process that no request and no worker took for its own. */
export type ProcessFaults = {
  /** Promises rejected without anybody to handle it, since the process began. */
  readonly rejections: number
  /** Aborted by an exception that nobody caught. The process must end. */
  readonly uncaught: AbortSignal
}

/** For tests and tools, which keep what their own process does with faults. */
export const noProcessFaults: ProcessFaults = { rejections: 0, uncaught: new AbortController().signal }

/**
 * Takes over, for the rest of the process, what Node does with faults that nobody handles. `report` is told of
 * each.
 *
 * A rejection is counted, and the process goes on. It belongs to one piece of work, whose transaction is rolled
 * back; ending the process would let one request end everybody's. A loop that has stopped shows in `/readyz`.
 *
 * An exception in a callback may have left what all share half changed. The process stops in order, and fails.
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

/** Adds the figures of `faults` to `registry`. Once per registry. */
export function createProcessFaultMetrics(registry: Registry, faults: Pick<ProcessFaults, 'rejections'>): void {
  let shown = 0
  new Counter({
    name: 'postern_unhandled_rejections_total',
    help: 'Rejected promises that nothing in this process handled: each is a fault of the service, and in its log.',
    registers: [registry],
    collect() {
      this.inc(faults.rejections - shown)
      shown = faults.rejections
    },
  })
}
