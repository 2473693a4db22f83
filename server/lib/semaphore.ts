import { addToCount } from './count-map.ts'
import { whenAborted } from './when-aborted.ts'

/** A FIFO semaphore whose permits can be taken several at a time: bytes of memory, for example. */
export type Semaphore = {
  /**
   * Waits, behind all earlier callers, until `permits` are free and takes them; default 1, at most all there are. Returns
   * the function that releases them. Calling it again does nothing.
   */
  acquire(permits?: number): Promise<() => void>
}

/** A semaphore whose callers have keys, such as accounts, so that no key takes or waits for all of it. */
export type KeyedSemaphore = {
  /**
   * As `acquire` of a semaphore, but callers whose key has as many permit holders as it may are passed by. Returns null
   * if too many callers wait already, or if `signal` is aborted first.
   */
  acquire(request: { key: string; permits?: number }, signal: AbortSignal): Promise<(() => void) | null>
}

export type KeyedSemaphoreLimits = {
  /** Permits in all. */
  permits: number
  /** Maximum holders of permits. Default: no limit. */
  holders?: number
  /** Maximum holders of one key. Default: no limit. */
  holdersPerKey?: number
  /** Maximum waiting callers. One key may have at most as many as there are free waiting places. Default: no limit. */
  waiting?: number
}

/** @param size Permits in all. */
export function createSemaphore(size: number): Semaphore {
  const queue = new PermitQueue({ permits: size })
  return {
    acquire: (permits = 1) => new Promise((start) => queue.add({ key: '', permits, start })),
  }
}

export function createKeyedSemaphore({
  waiting = Number.POSITIVE_INFINITY,
  ...limits
}: KeyedSemaphoreLimits): KeyedSemaphore {
  const queue = new PermitQueue(limits)
  return {
    acquire({ key, permits = 1 }, signal) {
      if (signal.aborted) return Promise.resolve(null)
      return new Promise((resolve) => {
        const request: PermitRequest = { key, permits, start: end }
        const stopListening = whenAborted(signal, giveUp)
        const isCrowded = queue.waitingOf(key) >= waiting - queue.waiting
        queue.add(request)
        if (isCrowded) giveUp()

        function giveUp(): void {
          if (queue.remove(request)) end(null)
        }
        function end(release: (() => void) | null): void {
          stopListening()
          resolve(release)
        }
      })
    },
  }
}

type PermitRequest = { key: string; permits: number; start(release: () => void): void }

/** The permits of a semaphore, and who waits for them. */
class PermitQueue {
  readonly #limits: Required<Omit<KeyedSemaphoreLimits, 'waiting'>>
  readonly #waiting = new Set<PermitRequest>()
  readonly #waitingOf = new Map<string, number>()
  readonly #holdersOf = new Map<string, number>()
  #holders = 0
  #free: number

  constructor({
    permits,
    holders = Number.POSITIVE_INFINITY,
    holdersPerKey = Number.POSITIVE_INFINITY,
  }: Omit<KeyedSemaphoreLimits, 'waiting'>) {
    if (!(permits >= 1)) throw new RangeError(`a semaphore needs at least one permit, not ${permits}`)
    this.#limits = { permits, holders, holdersPerKey }
    this.#free = permits
  }

  get waiting(): number {
    return this.#waiting.size
  }

  waitingOf(key: string): number {
    return this.#waitingOf.get(key) ?? 0
  }

  /** Starts the request at once if it may, and otherwise when it is its turn. */
  add(request: PermitRequest): void {
    this.#waiting.add(request)
    addToCount(this.#waitingOf, request.key, 1)
    this.#startWaiting()
  }

  /** Returns false if the request does not wait. */
  remove(request: PermitRequest): boolean {
    const isWaiting = this.#waiting.delete(request)
    if (isWaiting) {
      addToCount(this.#waitingOf, request.key, -1)
      // It may have been the one that those behind it wait for.
      this.#startWaiting()
    }
    return isWaiting
  }

  #startWaiting(): void {
    const { holders, holdersPerKey } = this.#limits
    for (const request of this.#waiting) {
      if (this.#holders >= holders) return
      if ((this.#holdersOf.get(request.key) ?? 0) >= holdersPerKey) continue
      // Later callers must not overtake one that wants many permits, or it might wait forever.
      if (Math.min(request.permits, this.#limits.permits) > this.#free) return
      this.#waiting.delete(request)
      addToCount(this.#waitingOf, request.key, -1)
      this.#start(request)
    }
  }

  #start({ key, permits, start }: PermitRequest): void {
    const taken = Math.min(permits, this.#limits.permits)
    this.#free -= taken
    this.#holders += 1
    addToCount(this.#holdersOf, key, 1)
    let isReleased = false
    start(() => {
      if (isReleased) return
      isReleased = true
      this.#free += taken
      this.#holders -= 1
      addToCount(this.#holdersOf, key, -1)
      this.#startWaiting()
    })
  }
}
