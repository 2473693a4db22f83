/** A number of places that are taken in turn. */
export type Semaphore = {
  /** Resolves when one is free, and takes it. Call what it answers once, to give it back. */
  acquire(): Promise<() => void>
}

export function createSemaphore(count: number): Semaphore {
  const waiting: (() => void)[] = []
  let free = count

  const giveBack = () => {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }

  return {
    async acquire() {
      if (free > 0) free -= 1
      else await new Promise<void>((resolve) => waiting.push(resolve))
      return giveBack
    },
  }
}
