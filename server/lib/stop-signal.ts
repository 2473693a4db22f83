/** A Ctrl-C under npm arrives twice: from the terminal, and handed on by npm. */
const sameSignalMs = 500

/**
 * Takes over SIGINT and SIGTERM for the rest of the process. The signal answered is aborted by the
 * first of them; a second one, half a second later or more, ends the process at once with exit code 1.
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
