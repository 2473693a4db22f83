type Callbacks = { all: Set<() => void>; listener: () => void }

const callbacksOf = new WeakMap<AbortSignal, Callbacks>()

/**
 * Calls `callback` when `signal` is aborted; returns a function that takes it back. All callbacks of a signal share one
 * listener: Node reads through the list of listeners whenever one is added or removed, which takes 5 to 9 µs with the
 * 1,024 exchanges that a process can have in flight.
 */
export function whenAborted(signal: AbortSignal, callback: () => void): () => void {
  const { all, listener } = callbacksOf.get(signal) ?? listenTo(signal)
  all.add(callback)
  return () => {
    all.delete(callback)
    if (all.size > 0) return
    signal.removeEventListener('abort', listener)
    callbacksOf.delete(signal)
  }
}

function listenTo(signal: AbortSignal): Callbacks {
  const all = new Set<() => void>()
  const listener = () => {
    for (const callback of all) callback()
  }
  const callbacks = { all, listener }
  callbacksOf.set(signal, callbacks)
  signal.addEventListener('abort', listener)
  return callbacks
}
