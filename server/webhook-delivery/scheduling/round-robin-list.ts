/**
 * A circular list of distinct items. All operations take constant time. A `Set` does not guarantee that when its
 * first item is taken again and again.
 */
export type Ring<Item> = {
  readonly size: number
  /** Returns the item whose turn it is. */
  first(): Item | undefined
  has(item: Item): boolean
  /** Adds an item at the end. Does nothing if it is in the ring already. */
  add(item: Item): void
  /** Removes an item. Does nothing if it is not in the ring. */
  remove(item: Item): void
  /** Moves the first item to the end. */
  rotate(): void
}

type Node<Item> = { item: Item; before: Node<Item>; after: Node<Item> }

export function createRing<Item>(): Ring<Item> {
  const nodes = new Map<Item, Node<Item>>()
  let head: Node<Item> | undefined

  return {
    get size() {
      return nodes.size
    },
    first: () => head?.item,
    has: (item) => nodes.has(item),
    add(item) {
      if (nodes.has(item)) return
      const node = { item } as Node<Item>
      node.before = head?.before ?? node
      node.after = head ?? node
      node.before.after = node
      node.after.before = node
      head ??= node
      nodes.set(item, node)
    },
    remove(item) {
      const node = nodes.get(item)
      if (node === undefined) return
      nodes.delete(item)
      node.before.after = node.after
      node.after.before = node.before
      if (head === node) head = nodes.size === 0 ? undefined : node.after
    },
    rotate() {
      head = head?.after
    },
  }
}
