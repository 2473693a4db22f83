/** Has done together what is asked for at once. */
export type Coalescing<Item, Result> = {
  /** Has an item worked on, with others of its group. Rejects when the work on it does. */
  add(group: string, item: Item): Promise<Result>
}

export type CoalescingOptions<Item, Result> = {
  /** Items worked on at once, at most. */
  limit: number
  /** For how long what comes waits for what is being worked on. Milliseconds. Default 100. */
  patienceMs?: number
  /** Answers a result for each item, in their order. What it rejects with is of all of them, unless it `isOfOne`. */
  work: (items: readonly [Item, ...Item[]]) => Promise<readonly Result[]>
  /** Whether an error may be due to one item, with nothing done for the others: then each is worked on alone. */
  isOfOne: (error: unknown) => boolean
}

type QueuedCall<Item, Result> = { item: Item; ending: PromiseWithResolvers<Result> }

/** What waits of a group, and who works on it: `prompt` are those who have not been at the same items for long. */
type Group<Item, Result> = { waiting: QueuedCall<Item, Result>[]; workers: number; prompt: number }

/**
 * For work that costs about the same for many as for one. What comes alone is worked on at once, and what comes
 * meanwhile together when that has ended: nothing waits for others to come, and the more comes, the less each
 * costs. What takes long holds up nobody who came after it.
 */
export function createCoalescing<Item, Result>(options: CoalescingOptions<Item, Result>): Coalescing<Item, Result> {
  const { limit, patienceMs = 100, work, isOfOne } = options
  /** Those that are being worked on. */
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
