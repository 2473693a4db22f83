/** Adds `by` to the count of `key` and returns the new count. Counts that reach zero are removed. */
export function addToCount<Key>(counts: Map<Key, number>, key: Key, by: number): number {
  const left = (counts.get(key) ?? 0) + by
  if (left > 0) counts.set(key, left)
  else counts.delete(key)
  return left
}
