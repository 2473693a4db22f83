/** A repeated task: runs when woken, and at least every `intervalMs`. */
export type Loop = {
  /** Starts a run at once, or another one after the run under way. Cheap to call often. */
  wake(): void
  /** Stops the loop after the run under way. */
  stop(): Promise<void>
  /** Returns milliseconds since the last run that ended without an error. */
  idleMs(): number
}

export type LoopOptions = {
  /** Milliseconds between runs without a wake-up. */
  intervalMs: number
  /** Does one run. Returns true when there is more work, so that the next run starts at once. */
  run: () => Promise<boolean>
  /** Receives the error of a run. The pause before the next run doubles with each error, up to `maxPauseMs`. */
  onError: (error: unknown) => void
}

const maxPauseMs = 5_000

/** Starts a loop. It does not rely on wake-ups, since it also polls: a lost one costs at most `intervalMs`. */
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
    // Starts after the caller's synchronous code, so that loops can refer to each other.
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
        // Wake-ups do not shorten the pause after an error: the cause is likely still there.
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
