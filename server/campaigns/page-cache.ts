/** A cache of pages that take long to make. */
export type PageCache<Page> = {
  /** Returns the page of a key, made by `make` unless it is kept. Concurrent calls for a key share one. */
  get(key: string, make: () => Promise<Page>): Promise<Page>
}

export type PageCacheOptions<Page> = {
  sizeOf: (page: Page) => number
  /** Size of all pages that are kept. A larger one is not kept. */
  maxSize: number
  /** How long a page is kept. Milliseconds. */
  keptMs: number
  /** Milliseconds, from any time on. */
  nowMs: () => number
}

type Entry<Page> = { page: Page; size: number; untilMs: number }

/** Creates a cache that gives up the page that was not read for longest. A page that fails is not kept. */
export function createPageCache<Page>(options: PageCacheOptions<Page>): PageCache<Page> {
  const { sizeOf, maxSize, keptMs, nowMs } = options
  /** In the order in which they were read. */
  const kept = new Map<string, Entry<Page>>()
  const making = new Map<string, Promise<Page>>()
  let size = 0

  function remove(key: string): void {
    size -= kept.get(key)?.size ?? 0
    kept.delete(key)
  }

  function keep(key: string, page: Page): void {
    remove(key)
    const entry = { page, size: sizeOf(page), untilMs: nowMs() + keptMs }
    if (entry.size > maxSize) return
    kept.set(key, entry)
    size += entry.size
    for (const [oldest] of kept) {
      if (size <= maxSize) break
      remove(oldest)
    }
  }

  async function makeAndKeep(key: string, make: () => Promise<Page>): Promise<Page> {
    const page = await make()
    keep(key, page)
    return page
  }

  return {
    get(key, make) {
      const entry = kept.get(key)
      if (entry !== undefined && entry.untilMs > nowMs()) {
        kept.delete(key)
        kept.set(key, entry)
        return Promise.resolve(entry.page)
      }
      const page = making.get(key) ?? makeAndKeep(key, make).finally(() => making.delete(key))
      making.set(key, page)
      return page
    },
  }
}
