import { whenAborted } from './when-aborted.ts'

/** Settles as `work` does, or rejects with `reason()` as soon as `signal` is aborted. The work itself goes on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, reason: () => Error): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  // The loser of the race may reject later.
  work.catch(() => undefined)
  aborted.catch(() => undefined)
  if (signal.aborted) throw reason()
  const stopListening = whenAborted(signal, () => reject(reason()))
  try {
    return await Promise.race([work, aborted])
  } finally {
    stopListening()
  }
}
