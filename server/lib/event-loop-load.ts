import { type EventLoopUtilization, performance } from 'node:perf_hooks'

/** Shortest time to measure the event loop over. Milliseconds. */
const spanMs = 100
/** Utilization from which the event loop counts as busy: the share of time it runs, or waits for a core. */
const busyPart = 0.9

/** Measures since the start of the process, or since the measurement `since`. */
type Measure = (since?: EventLoopUtilization) => EventLoopUtilization

/**
 * Returns a function that returns true when the event loop of this process is busy. It judges the last span of at
 * least 100 ms between two calls.
 *
 * @param measure Default: `performance.eventLoopUtilization`.
 */
export function createEventLoopLoad(measure: Measure = performance.eventLoopUtilization): () => boolean {
  let since = measure()
  let isBusy = false
  return () => {
    const { idle, active, utilization } = measure(since)
    if (idle + active < spanMs) return isBusy
    since = measure()
    isBusy = utilization >= busyPart
    return isBusy
  }
}
