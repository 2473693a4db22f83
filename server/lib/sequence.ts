let last = 0

/** Returns a number above all it returned before in this process: the order of what happens, also while clocks stand still. */
export function nextSequence(): number {
  last += 1
  return last
}
