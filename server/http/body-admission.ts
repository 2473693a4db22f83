/** A FIFO semaphore counted in bytes. Large bodies share it, so that they cannot exhaust the memory of the process. */
export type ByteSemaphore = {
  /**
   * Waits until `bytes` are free and takes them, at most the size of the semaphore. Returns a release function. Calling
   * it again does nothing.
   */
  acquire(bytes: number): Promise<() => void>
}

/** @param size Bytes that may be taken at once. */
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
