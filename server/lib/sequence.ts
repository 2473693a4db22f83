let last = 0

/** Returns a number greater than all before it in this process. It orders events within one tick of the clock. */
export function nextSequence(): number {
  last += 1
  return last
}
