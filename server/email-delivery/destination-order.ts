/**
 * Keeps the order of messages that are composed concurrently: messages for one destination go to the transport in the
 * order in which their emails were claimed.
 */
export type HandOverOrder = {
  /** Takes the next turn of a destination. */
  join(destination: string): Turn
}

export type Turn = {
  /** Resolves when all earlier turns are over. */
  come: Promise<unknown>
  /** Ends the turn: call it after the hand-over, or when there is nothing to hand over. A second call does nothing. */
  pass(): void
}

export function createHandOverOrder(): HandOverOrder {
  /** By destination with open turns: resolves when the last turn, and so every turn, is over. */
  const ends = new Map<string, Promise<unknown>>()
  return {
    join(destination) {
      const come = ends.get(destination) ?? Promise.resolve()
      const { promise: passed, resolve: pass } = Promise.withResolvers<void>()
      // A turn that is passed early is over only after all earlier turns, so that the next turn cannot overtake them.
      const over = Promise.all([come, passed]).then(() => {
        if (ends.get(destination) === over) ends.delete(destination)
      })
      ends.set(destination, over)
      return { come, pass }
    },
  }
}
