/** Has done together what is asked for at once. */
export type Together<Item, Result> = {
  /** Has an item worked on, with others of its group. Rejects when the work on it does. */
  add(group: string, item: Item): Promise<Result>
}

export type TogetherOptions<Item, Result> = {
  /** Items worked on at once, at most. */
  limit: number
  /** Answers a result for each item, in their order. What it rejects with is of all of them, unless it `isOfOne`. */
  work: (items: readonly [Item, ...Item[]]) => Promise<readonly Result[]>
  /** Whether an error may be due to one item, with nothing done for the others: then each is worked on alone. */
  isOfOne: (error: unknown) => boolean
}

type Waiting<Item, Result> = { item: Item; ending: PromiseWithResolvers<Result> }

/**
 * For work that costs about the same for many as for one. What comes alone is worked on at once, and what comes
 * meanwhile together when that has ended: nothing waits for others to come, and the more comes, the less each costs.
 */
export function createTogether<Item, Result>(options: TogetherOptions<Item, Result>): Together<Item, Result> {
  const { limit, work, isOfOne } = options
  /** What waits for a group that is being worked on; of one that is not, nothing does. */
  const groups = new Map<string, Waiting<Item, Result>[]>()

  async function workOn(batch: readonly [Waiting<Item, Result>, ...Waiting<Item, Result>[]]): Promise<void> {
    const [first, ...others] = batch
    try {
      const results = await work([first.item, ...others.map(({ item }) => item)])
      for (const [index, { ending }] of batch.entries()) ending.resolve(results[index] as Result)
    } catch (error) {
      if (others.length > 0 && isOfOne(error)) for (const one of batch) await workOn([one])
      else for (const { ending } of batch) ending.reject(error)
    }
  }

  async function workThrough(group: string, waiting: Waiting<Item, Result>[]): Promise<void> {
    for (;;) {
      const [first, ...others] = waiting.splice(0, limit)
      if (first === undefined) break
      await workOn([first, ...others])
    }
    groups.delete(group)
  }

  return {
    add(group, item) {
      const one = { item, ending: Promise.withResolvers<Result>() }
      const waiting = groups.get(group)
      if (waiting !== undefined) waiting.push(one)
      else {
        const began = [one]
        groups.set(group, began)
        void workThrough(group, began)
      }
      return one.ending.promise
    },
  }
}
