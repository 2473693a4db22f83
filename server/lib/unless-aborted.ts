import { addAbortListener } from 'node:events'

/** Resolves and rejects as `work` does, or rejects with `reason()` as soon as `signal` is aborted; the work goes on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, reason: () => Error): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  // The loser of the race may reject later.
  work.catch(() => undefined)
  aborted.catch(() => undefined)
  if (signal.aborted) throw reason()
  using _ = addAbortListener(signal, () => reject(reason()))
  return await Promise.race([work, aborted])
}
