/** A FIFO semaphore whose permits can be taken several at a time: bytes of memory, for example. */
export type Semaphore = {
  /**
   * Waits, behind all earlier callers, until `permits` are free and takes them; default 1, at most all there are. Returns
   * the function that releases them. Calling it again does nothing.
   */
  acquire(permits?: number): Promise<() => void>
}

/** @param size Permits in all. */
export function createSemaphore(size: number): Semaphore {
  if (!(size >= 1)) throw new RangeError(`a semaphore needs at least one permit, not ${size}`)
  let free = size
  const waiting: { permits: number; start: () => void }[] = []

  function startWaiting(): void {
    for (let next = waiting[0]; next !== undefined && next.permits <= free; next = waiting[0]) {
      waiting.shift()
      free -= next.permits
      next.start()
    }
  }

  return {
    async acquire(permits = 1) {
      const taken = Math.min(permits, size)
      await new Promise<void>((start) => {
        waiting.push({ permits: taken, start })
        startWaiting()
      })
      let isReleased = false
      return () => {
        if (isReleased) return
        isReleased = true
        free += taken
        startWaiting()
      }
    },
  }
}
