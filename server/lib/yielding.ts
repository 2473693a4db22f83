import { setImmediate as nextTurn } from 'node:timers/promises'

/** Milliseconds of work before yielding to the event loop. */
const workMs = 10

/**
 * Maps `items` one after the other, like `items.map(map)`, but yields to the event loop every 10 ms, so that a long
 * list does not block other requests.
 */
export async function mapYielding<T, R>(
  items: readonly T[],
  map: (item: T, index: number) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let since = performance.now()
  for (const [index, item] of items.entries()) {
    if (performance.now() - since >= workMs) {
      await nextTurn()
      since = performance.now()
    }
    const result = map(item, index)
    // An await costs more than most items.
    results.push(result instanceof Promise ? await result : result)
  }
  return results
}

/** Calls `take` with each slice of the bytes in order, and yields to the event loop between slices. */
export async function sliceYielding(bytes: Buffer, sliceBytes: number, take: (slice: Buffer) => void): Promise<void> {
  for (let from = 0; from < bytes.length; from += sliceBytes) {
    if (from > 0) await nextTurn()
    take(bytes.subarray(from, from + sliceBytes))
  }
}

/**
 * Yields slices of `length` UTF-16 code units, or one more where a surrogate pair would be split. Yields to the event
 * loop between slices.
 */
export async function* slicesYielding(text: string, length: number): AsyncGenerator<string> {
  for (let from = 0; from < text.length; ) {
    if (from > 0) await nextTurn()
    const end = from + length
    const to = end + (isPairAt(text, end - 1) ? 1 : 0)
    yield text.slice(from, to)
    from = to
  }
}

function isPairAt(text: string, index: number): boolean {
  return (text.codePointAt(index) ?? 0) > 0xffff
}
