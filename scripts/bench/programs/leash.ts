/*
 * Loaded before any program of a benchmark (`node --import`): ends it when the benchmark is gone,
 * however that ended, and answers what it has used.
 */

/** For a program that ends in order when told to, before it is ended anyway. Milliseconds. */
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
// A program that is done may end, though it could still be asked.
process.channel?.unref()
