import { type EventLoopUtilization, performance } from 'node:perf_hooks'

/** For how long the event loop is watched before it is judged. Milliseconds. */
const spanMs = 100
/** The part of its time that the event loop of a busy process works, or waits for a core. */
const busyPart = 0.9

/** Since the start of the process, or since what was returned then. */
type Measure = (since?: EventLoopUtilization) => EventLoopUtilization

/**
 * Returns a function that tells whether the event loop of this process was hardly ever idle lately: in the last span of
 * 100 ms or more that lies between two calls.
 *
 * @param measure Default: Node's own.
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
