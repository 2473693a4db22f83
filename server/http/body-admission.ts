/** Memory that large bodies share, so that many at once cannot exhaust that of the process. */
export type ByteSemaphore = {
  /**
   * Waits, behind those that came before, until there is room for `bytes`. Answers how to give it back, once
   * or more often; `bytes` above the whole are taken for the whole.
   */
  acquire(bytes: number): Promise<() => void>
}

/** @param size Bytes of all bodies that are in it at once. */
export function createByteSemaphore(size: number): ByteSemaphore {
  let free = size
  const waiting: { bytes: number; enter: () => void }[] = []

  function admit(): void {
    for (let next = waiting[0]; next !== undefined && next.bytes <= free; next = waiting[0]) {
      waiting.shift()
      free -= next.bytes
      next.enter()
    }
  }

  return {
    async acquire(bytes) {
      const taken = Math.min(bytes, size)
      await new Promise<void>((resolve) => {
        waiting.push({ bytes: taken, enter: resolve })
        admit()
      })
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        free += taken
        admit()
      }
    },
  }
}
