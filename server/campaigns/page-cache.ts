import { addToCount } from '../lib/count-map.ts'

/** A cache of pages that take long to make. */
export type PageCache<Page> = {
  /** Returns a page, made by `make` unless it is kept. Concurrent calls for a page share one. */
  get(page: PageKey, make: () => Promise<Page>): Promise<Page>
}

/** `owner`: whose pages share a part of the cache, an account. `id`: differs from those of all owners. */
export type PageKey = { owner: string; id: string }

export type PageCacheOptions<Page> = {
  /** Returns whether a page is kept once it is made. */
  isKept: (page: Page) => boolean
  sizeOf: (page: Page) => number
  /** Size of all pages that are kept. */
  maxSize: number
  /** Size of the pages of one owner that are kept. A larger page is not kept. */
  maxSizeOfOwner: number
  /** How long a page is kept. Milliseconds. */
  keptMs: number
  /** Milliseconds, from any time on. */
  nowMs: () => number
}

type Entry<Page> = { page: Page; owner: string; size: number; untilMs: number }

/**
 * Creates a cache that gives up the page that was not read for longest: of its owner, whose share is full, or of all. A
 * page that fails is not kept.
 */
export function createPageCache<Page>(options: PageCacheOptions<Page>): PageCache<Page> {
  const { isKept, sizeOf, maxSize, maxSizeOfOwner, keptMs, nowMs } = options
  /** In the order in which they were read. */
  const kept = new Map<string, Entry<Page>>()
  const making = new Map<string, Promise<Page>>()
  const sizeOfOwner = new Map<string, number>()
  let size = 0

  function remove(id: string): void {
    const entry = kept.get(id)
    if (entry === undefined) return
    kept.delete(id)
    size -= entry.size
    addToCount(sizeOfOwner, entry.owner, -entry.size)
  }

  function keep({ owner, id }: PageKey, page: Page): void {
    remove(id)
    const entry = { page, owner, size: sizeOf(page), untilMs: nowMs() + keptMs }
    if (!isKept(page) || entry.size > Math.min(maxSize, maxSizeOfOwner)) return
    kept.set(id, entry)
    size += entry.size
    addToCount(sizeOfOwner, owner, entry.size)
    for (const [oldest, { owner: its }] of kept) {
      const isOwnerOver = (sizeOfOwner.get(owner) ?? 0) > maxSizeOfOwner
      if (!isOwnerOver && size <= maxSize) break
      if (!isOwnerOver || its === owner) remove(oldest)
    }
  }

  async function makeAndKeep(key: PageKey, make: () => Promise<Page>): Promise<Page> {
    const page = await make()
    keep(key, page)
    return page
  }

  return {
    get(key, make) {
      const { id } = key
      const entry = kept.get(id)
      if (entry !== undefined && entry.untilMs > nowMs()) {
        kept.delete(id)
        kept.set(id, entry)
        return Promise.resolve(entry.page)
      }
      const page = making.get(id) ?? makeAndKeep(key, make).finally(() => making.delete(id))
      making.set(id, page)
      return page
    },
  }
}
