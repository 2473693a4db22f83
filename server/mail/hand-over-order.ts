/**
 * The order in which messages for one destination are handed to the transport: that of their claims, although they
 * are made side by side.
 */
export type HandOverOrder = {
  /** Takes the next turn of a destination. */
  join(destination: string): Turn
}

export type Turn = {
  /** Resolves when all that joined before have passed. */
  come: Promise<unknown>
  /** To be called once handed over, or when there is nothing to hand over. Has no effect the second time. */
  pass(): void
}

export function createHandOverOrder(): HandOverOrder {
  /** By destination, when its last turn has come and passed. Has no entry where nobody waits. */
  const lasts = new Map<string, Promise<unknown>>()
  return {
    join(destination) {
      const come = lasts.get(destination) ?? Promise.resolve()
      const { promise: passed, resolve: pass } = Promise.withResolvers<void>()
      // Who passes early must not let the next one before those who still make their message.
      const over = Promise.all([come, passed]).then(() => {
        if (lasts.get(destination) === over) lasts.delete(destination)
      })
      lasts.set(destination, over)
      return { come, pass }
    },
  }
}
