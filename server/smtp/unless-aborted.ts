/** What `work` comes to, or a rejection with `reason` as soon as `signal` is aborted; the work goes on unheard. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, reason: () => Error): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(reason())
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
    // Whoever comes too late is not heard.
    work.catch(() => undefined)
  }
}
