type Waiting = { callbacks: Set<() => void>; listener: () => void }

const waiting = new WeakMap<AbortSignal, Waiting>()

/**
 * Calls `callback` when `signal` is aborted, unless what it answers is called before. All who wait for a signal
 * share one listener, which is gone when nobody waits: one for each exchange costs as much as to sign it.
 */
export function whenAborted(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks, listener } = waiting.get(signal) ?? listenTo(signal)
  callbacks.add(callback)
  return () => {
    callbacks.delete(callback)
    if (callbacks.size > 0) return
    signal.removeEventListener('abort', listener)
    waiting.delete(signal)
  }
}

function listenTo(signal: AbortSignal): Waiting {
  const callbacks = new Set<() => void>()
  const listener = () => {
    for (const callback of callbacks) callback()
  }
  const made = { callbacks, listener }
  waiting.set(signal, made)
  signal.addEventListener('abort', listener)
  return made
}
