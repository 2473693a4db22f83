import { type EventLoopUtilization, performance } from 'node:perf_hooks'

/** For how long the event loop is watched before it is judged. Milliseconds. */
const spanMs = 100
/** The part of its time that the event loop of a busy process works, or waits for a core. */
const busyPart = 0.9

/** Returns a function that tells whether the event loop of this process was hardly ever idle lately. */
export function createLoopLoad(): () => boolean {
  let since: EventLoopUtilization = performance.eventLoopUtilization()
  let isBusy = false
  return () => {
    const { idle, active, utilization } = performance.eventLoopUtilization(since)
    if (idle + active < spanMs) return isBusy
    since = performance.eventLoopUtilization()
    isBusy = utilization >= busyPart
    return isBusy
  }
}
