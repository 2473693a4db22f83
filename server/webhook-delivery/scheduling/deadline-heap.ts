/**
 * A priority queue (binary heap) of items by time. Items with the same time come out in the order in which they were
 * added.
 */
export type Deadlines<Item> = {
  readonly size: number
  /** Adds an item. O(log n). */
  add(item: Item, at: number): void
  /** Returns the earliest time. Undefined: the queue is empty. */
  earliest(): number | undefined
  /** Removes and returns the earliest item whose time is `now` or before. Undefined: there is none. */
  takeDue(now: number): Item | undefined
}

/** `order` is the number of items added before. */
type Entry<Item> = { item: Item; at: number; order: number }

export function createDeadlines<Item>(): Deadlines<Item> {
  /** The children of the entry at `n` are at `2n + 1` and `2n + 2`, and neither is before it. */
  const heap: Entry<Item>[] = []
  let added = 0

  /** Puts an entry at `index`, or above it: entries that it is before move down. */
  function rise(entry: Entry<Item>, index: number): void {
    let free = index
    while (free > 0) {
      const above = (free - 1) >> 1
      const parent = heap[above]
      if (parent === undefined || !isBefore(entry, parent)) break
      heap[free] = parent
      free = above
    }
    heap[free] = entry
  }

  /** Puts an entry at the top, or below it: entries that are before it move up. */
  function sink(entry: Entry<Item>): void {
    let free = 0
    for (;;) {
      let below = 2 * free + 1
      let child = heap[below]
      const right = heap[below + 1]
      if (child !== undefined && right !== undefined && isBefore(right, child)) {
        child = right
        below += 1
      }
      if (child === undefined || !isBefore(child, entry)) break
      heap[free] = child
      free = below
    }
    heap[free] = entry
  }

  return {
    get size() {
      return heap.length
    },
    add(item, at) {
      rise({ item, at, order: added++ }, heap.length)
    },
    earliest: () => heap[0]?.at,
    takeDue(now) {
      const first = heap[0]
      if (first === undefined || first.at > now) return undefined
      const last = heap.pop()
      if (last !== undefined && last !== first) sink(last)
      return first.item
    },
  }
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
