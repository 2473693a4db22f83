/** Something done again and again: when woken, and at the latest every `intervalMs`. */
export type Loop = {
  /** Has it run at once, or once more if it is running. Cheap to call often. */
  wake(): void
  /** Ends it after the run under way. */
  stop(): Promise<void>
  /** Milliseconds since a run last ended well. */
  idleMs(): number
}

export type LoopOptions = {
  /** Milliseconds between runs when nothing wakes it. */
  intervalMs: number
  /** One run. Answers whether there is more to do at once. */
  run: () => Promise<boolean>
  /** Told of a run that threw; the next one waits longer, up to `maxPauseMs`. */
  onError: (error: unknown) => void
}

const maxPauseMs = 5_000

/** Starts a loop. Polling is the truth, waking is speed: a lost wake-up costs at most `intervalMs`. */
export function startLoop({ intervalMs, run, onError }: LoopOptions): Loop {
  let stopping = false
  let woken = true
  let endPause: (() => void) | undefined
  let lastSuccess = performance.now()
  let failures = 0

  async function pause(ms: number): Promise<void> {
    if (woken || stopping) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      endPause = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    endPause = undefined
  }

  async function go(): Promise<void> {
    // Begins after the caller has finished, so that loops may know one another.
    await Promise.resolve()
    while (!stopping) {
      woken = false
      try {
        if (await run()) woken = true
        failures = 0
        lastSuccess = performance.now()
        await pause(intervalMs)
      } catch (error) {
        onError(error)
        // Wake-ups do not shorten this pause: what is broken stays so for a moment.
        woken = false
        await pause(Math.min(maxPauseMs, 100 * 2 ** failures++))
      }
    }
  }

  const done = go()
  return {
    wake() {
      woken = true
      if (failures === 0) endPause?.()
    },
    async stop() {
      stopping = true
      endPause?.()
      await done
    },
    idleMs: () => performance.now() - lastSuccess,
  }
}
