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
  const heap: Entry<Item>[] = []

  let added = 0

  function isBefore(a: number, b: number): boolean {
    const [first, second] = [heap[a], heap[b]]
    if (first === undefined || second === undefined) return first !== undefined
    return first.at < second.at || (first.at === second.at && first.order < second.order)
  }

  function swap(a: number, b: number): void {
    const [first, second] = [heap[a], heap[b]]
    if (first === undefined || second === undefined) return
    heap[a] = second
    heap[b] = first
  }

  function rise(from: number): void {
    for (let index = from; index > 0; ) {
      const parent = (index - 1) >> 1
      if (!isBefore(index, parent)) return
      swap(parent, index)
      index = parent
    }
  }

  function sink(): void {
    for (let index = 0; ; ) {
      const [left, right] = [2 * index + 1, 2 * index + 2]
      const least = isBefore(right, left) ? right : left
      if (!isBefore(least, index)) return
      swap(least, index)
      index = least
    }
  }

  return {
    get size() {
      return heap.length
    },
    add(item, time) {
      heap.push({ item, at: time, order: added++ })
      rise(heap.length - 1)
    },
    earliest: () => heap[0]?.at,
    takeDue(now) {
      const [first] = heap
      if (first === undefined || first.at > now) return undefined
      swap(0, heap.length - 1)
      heap.pop()
      sink()
      return first.item
    },
  }
}
