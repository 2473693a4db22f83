/**
 * Messages are made side by side. Those for one destination are still handed to the transport in the order in which
 * their emails were claimed.
 */
export type HandOverOrder = {
  /** Takes the next turn of a destination. */
  join(destination: string): Turn
}

export type Turn = {
  /** Resolves when all turns before it are over. */
  come: Promise<unknown>
  /** Ends the turn: call it after the hand-over, or when there is nothing to hand over. A second call does nothing. */
  pass(): void
}

export function createHandOverOrder(): HandOverOrder {
  /** For each destination with turns that are not over: resolves when the last of them, and so each of them, is over. */
  const ends = new Map<string, Promise<unknown>>()
  return {
    join(destination) {
      const come = ends.get(destination) ?? Promise.resolve()
      const { promise: passed, resolve: pass } = Promise.withResolvers<void>()
      // A turn that is passed early is over only after those before it: the next must not overtake them.
      const over = Promise.all([come, passed]).then(() => {
        if (ends.get(destination) === over) ends.delete(destination)
      })
      ends.set(destination, over)
      return { come, pass }
    },
  }
}
