/** Counts of completed work in the current second and in the one before it. */
export type Throughput = { second: number; count: number; before: number }

/** Counts one completion at `now`. */
export function countOne(throughput: Throughput, now: Date): void {
  moveTo(throughput, now)
  throughput.count += 1
}

/** Returns the recent completions per second: the higher count of the two seconds. */
export function perSecond(throughput: Throughput, now: Date): number {
  moveTo(throughput, now)
  return Math.max(throughput.count, throughput.before)
}

function moveTo(throughput: Throughput, now: Date): void {
  const second = Math.floor(now.getTime() / 1000)
  if (second === throughput.second) return
  throughput.before = second === throughput.second + 1 ? throughput.count : 0
  throughput.count = 0
  throughput.second = second
}
