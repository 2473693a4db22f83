import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work done before the event loop turns. Milliseconds. */
const workMs = 10

/** As `items.map(map)`, but lets the event loop turn after every 10 ms, so that nobody waits for a long list. */
export async function mapInTurns<T, R>(items: readonly T[], map: (item: T, index: number) => R): Promise<R[]> {
  const results: R[] = []
  let since = performance.now()
  for (const [index, item] of items.entries()) {
    if (performance.now() - since >= workMs) {
      await nextTurn()
      since = performance.now()
    }
    results.push(map(item, index))
  }
  return results
}

/** Calls `take` with one slice of the bytes after another, each in a turn of its own. */
export async function sliceInTurns(bytes: Buffer, sliceBytes: number, take: (slice: Buffer) => void): Promise<void> {
  for (let from = 0; from < bytes.length; from += sliceBytes) {
    if (from > 0) await nextTurn()
    take(bytes.subarray(from, from + sliceBytes))
  }
}
