/** A FIFO semaphore. */
export type Semaphore = {
  /** Waits for a free permit, takes it and returns the function that releases it, which must be called once. */
  acquire(): Promise<() => void>
}

export function createSemaphore(count: number): Semaphore {
  const waiting: (() => void)[] = []
  let free = count

  const release = () => {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }

  return {
    async acquire() {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      return release
    },
  }
}
