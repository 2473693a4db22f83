import { setImmediate as nextTurn } from 'node:timers/promises'

/** Work done before the event loop turns. Milliseconds. */
const workMs = 10

/**
 * As `items.map(map)`, one after the other, but lets the event loop turn after every 10 ms, so that nobody waits for
 * a long list.
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
    results.push(await map(item, index))
  }
  return results
}

/** Calls `take` with one slice of the bytes after another, each in a turn of its own. */
export async function sliceYielding(bytes: Buffer, sliceBytes: number, take: (slice: Buffer) => void): Promise<void> {
  for (let from = 0; from < bytes.length; from += sliceBytes) {
    if (from > 0) await nextTurn()
    take(bytes.subarray(from, from + sliceBytes))
  }
}

/**
 * A text in slices of `length` characters of UTF-16, or one more where a pair of surrogates would be torn apart. Each
 * but the first comes in a turn of its own.
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
