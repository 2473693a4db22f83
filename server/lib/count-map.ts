/** Changes how many there are of `key`, and answers how many that leaves; of which there are none has no entry. */
export function addToCount<Key>(counts: Map<Key, number>, key: Key, by: 1 | -1): number {
  const left = (counts.get(key) ?? 0) + by
  if (left > 0) counts.set(key, left)
  else counts.delete(key)
  return left
}
