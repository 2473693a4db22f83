import { LRUCache } from 'lru-cache'
import type { Clock } from '../lib/clock.ts'
import { hashOfKey } from './key-format.ts'
import type { AuthenticatedKey, FoundKey } from './service.ts'

const lifeMs = 2_000
const defaultMaxKeys = 10_000

/**
 * A cache of the keys that this process has authenticated recently, so that most requests need no query. Holds valid
 * keys only, by the hash of their secret.
 */
export type KeyCache = {
  /** Returns the key of `secret`, if it was read less than two seconds ago. */
  get(secret: string): AuthenticatedKey | undefined
  /** Returns the result of `read`, and caches it when it is a valid key. Concurrent calls for one secret share it. */
  read(secret: string, read: () => Promise<FoundKey | null>): Promise<FoundKey | null>
  /**
   * Handles a notification on `keysChannel`: removes the key with this id, also one that is being read. An empty one
   * says that notifications may have been missed: removes all keys.
   */
  tellNotified(keyId: string): void
}

/** @param maxKeys Most keys held. Above it the least recently used one is removed. Default 10,000. */
export function createKeyCache({ clock, maxKeys = defaultMaxKeys }: { clock: Clock; maxKeys?: number }): KeyCache {
  type Entry = { key: AuthenticatedKey; readAt: number }
  const entries = new LRUCache<string, Entry>({ max: maxKeys })
  let reading = new Map<string, Promise<FoundKey | null>>()

  /** Prevents caching of reads under way, which may have missed a change. Their callers still get the results. */
  function disownReads(): void {
    reading = new Map()
  }

  return {
    get(secret) {
      const name = nameOf(secret)
      const entry = entries.get(name)
      if (entry === undefined) return undefined
      const age = clock.now().getTime() - entry.readAt
      if (age >= 0 && age < lifeMs) return entry.key
      entries.delete(name)
      return undefined
    },
    read(secret, read) {
      const name = nameOf(secret)
      const shared = reading.get(name)
      if (shared !== undefined) return shared
      const reads = reading
      const readAt = clock.now().getTime()
      const result = read()
        .then((found) => {
          if (reads === reading && found !== null && !found.isRevoked) entries.set(name, { key: found, readAt })
          return found
        })
        .finally(() => reads.delete(name))
      reads.set(name, result)
      return result
    },
    tellNotified(keyId) {
      disownReads()
      for (const [name, { key }] of entries) if (keyId === '' || key.keyId === keyId) entries.delete(name)
    },
  }
}

function nameOf(secret: string): string {
  return hashOfKey(secret).toString('base64')
}
