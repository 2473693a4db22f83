/** Milliseconds in which a second signal is taken for the first. Under npm a Ctrl-C arrives twice: npm forwards it. */
const sameSignalMs = 500

/**
 * Handles SIGINT and SIGTERM for the rest of the process. The first one aborts the returned signal. A second one more
 * than half a second later ends the process at once with exit code 1.
 */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController()
  let firstAt = 0
  function onSignal(): void {
    if (!stopping.signal.aborted) firstAt = performance.now()
    else if (performance.now() - firstAt > sameSignalMs) process.exit(1)
    stopping.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return stopping.signal
}
