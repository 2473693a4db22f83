/** Coalesces concurrent calls of one group into one batch. */
export type Coalescing<Item, Result> = {
  /** Processes an item together with others of its group and returns its result. Rejects when the work on it fails. */
  add(group: string, item: Item): Promise<Result>
}

export type CoalescingOptions<Item, Result> = {
  /** Most items in a batch. */
  limit: number
  /** Milliseconds after which new items no longer wait for the batch under way. Default 100. */
  patienceMs?: number
  /** Returns one result for each item, in their order. An error rejects all items of the batch, unless it `isOfOne`. */
  work: (items: readonly [Item, ...Item[]]) => Promise<readonly Result[]>
  /**
   * Returns true when one item may have caused the error and no work was done for the others. Each item is then
   * processed alone.
   */
  isOfOne: (error: unknown) => boolean
}

type QueuedCall<Item, Result> = { item: Item; ending: PromiseWithResolvers<Result> }

/** The waiting calls of a group and its workers. `prompt` workers have a batch for less than `patienceMs`, or none. */
type Group<Item, Result> = { waiting: QueuedCall<Item, Result>[]; workers: number; prompt: number }

/**
 * Creates a coalescer for work that costs about the same for many items as for one. A call starts at once when its
 * group is idle. Calls that arrive meanwhile form the next batch, which starts when the current one ends, or after
 * `patienceMs`. So no call waits for more calls to arrive, a higher load makes each call cheaper, and a slow batch does
 * not block later calls.
 */
export function createCoalescing<Item, Result>(options: CoalescingOptions<Item, Result>): Coalescing<Item, Result> {
  const { limit, patienceMs = 100, work, isOfOne } = options
  /** Groups with work under way. */
  const groups = new Map<string, Group<Item, Result>>()

  async function workOn(batch: readonly [QueuedCall<Item, Result>, ...QueuedCall<Item, Result>[]]): Promise<void> {
    const [first, ...others] = batch
    try {
      const results = await work([first.item, ...others.map(({ item }) => item)])
      for (const [index, { ending }] of batch.entries()) ending.resolve(results[index] as Result)
    } catch (error) {
      if (others.length > 0 && isOfOne(error)) for (const one of batch) await workOn([one])
      else for (const { ending } of batch) ending.reject(error)
    }
  }

  async function workThrough(name: string, group: Group<Item, Result>): Promise<void> {
    group.workers += 1
    group.prompt += 1
    for (;;) {
      const [first, ...others] = group.waiting.splice(0, limit)
      if (first === undefined) break
      let isPrompt = true
      const impatience = setTimeout(() => {
        isPrompt = false
        group.prompt -= 1
        if (group.waiting.length > 0) ensureWorker(name, group)
      }, patienceMs)
      await workOn([first, ...others])
      clearTimeout(impatience)
      if (!isPrompt) group.prompt += 1
    }
    group.prompt -= 1
    group.workers -= 1
    if (group.workers === 0) groups.delete(name)
  }

  function ensureWorker(name: string, group: Group<Item, Result>): void {
    if (group.prompt === 0) void workThrough(name, group)
  }

  return {
    add(name, item) {
      const ending = Promise.withResolvers<Result>()
      const group = groups.get(name) ?? { waiting: [], workers: 0, prompt: 0 }
      groups.set(name, group)
      group.waiting.push({ item, ending })
      ensureWorker(name, group)
      return ending.promise
    },
  }
}
