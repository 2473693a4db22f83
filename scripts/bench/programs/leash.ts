/*
 * Loaded before each program of a benchmark (`node --import`). Stops the program when the benchmark has ended for any
 * reason, and reports the usage of the program.
 */

/** Milliseconds for a program to stop in order before it is ended. */
const graceMs = 10_000

process.on('disconnect', () => {
  setTimeout(() => process.exit(1), graceMs).unref()
  process.kill(process.pid, 'SIGTERM')
})
process.on('message', (message) => {
  if (message !== 'usage') return
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  process.send?.({
    usage: { cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, peakBytes: maxRSS * 1024 },
    bytes: process.memoryUsage.rss(),
  })
})
// The channel does not keep a finished program alive.
process.channel?.unref()
