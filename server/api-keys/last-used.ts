import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { updateLastUses } from './queries.ts'

/** Writes of one key are at least this far apart. Milliseconds. */
const restMs = 60_000
/** Milliseconds between two looks for keys to write. */
const intervalMs = 5_000
/** Most keys written by one statement. */
const chunkSize = 1_000
/** No address is longer, also with a zone. Longer text, which only a proxy can send, is not kept. */
const maxAddressLength = 64
/** Most keys remembered. Beyond them, the use of the key that was not used for the longest time is forgotten. */
const defaultMaxKeys = 10_000

/**
 * Remembers when and from where keys were used, and writes it behind the requests: many keys with one statement, each
 * at most once a minute. A process that ends without `stop` loses what is not written.
 */
export type LastUses = {
  /**
   * Notes that a key is used now.
   *
   * @param from The address of the client, in any form; it is brought into one form when it is written.
   */
  saw(key: { accountId: string; keyId: string }, from: string): void
  /** Writes what is due. */
  write(): Promise<void>
  /** Writes everything, and ends. */
  stop(): Promise<void>
}

export type LastUsesOptions = {
  db: Db
  /** Brings the address of a client into one form. Null: it is none. */
  addressOf: (from: string) => string | null
  clock: Clock
  logger: Logger
  /** Default: 10,000. */
  maxKeys?: number
}

type Use = { accountId: string; keyId: string; at: number; from: string; writtenAt: number }

export function startLastUses({ db, clock, addressOf, logger, maxKeys = defaultMaxKeys }: LastUsesOptions): LastUses {
  const uses = new LRUCache<string, Use>({ max: maxKeys })

  function onError(err: unknown): void {
    logger.warn({ err }, 'writing when API keys were last used failed; trying again')
  }

  async function writeThose(isDue: (use: Use) => boolean): Promise<void> {
    const due = [...uses.values()].filter((use) => use.at > use.writtenAt && isDue(use))
    for (let from = 0; from < due.length; from += chunkSize) {
      const chunk = due.slice(from, from + chunkSize)
      const written = chunk.map((use) => ({ use, at: use.at }))
      await updateLastUses(
        db,
        chunk.map((use) => ({ ...use, at: new Date(use.at), from: addressOf(use.from) })),
      )
      for (const { use, at } of written) use.writtenAt = at
    }
  }

  /** One after the other, so that none writes what another is writing. */
  let last: Promise<void> = Promise.resolve()
  function writeNext(isDue: (use: Use) => boolean): Promise<void> {
    const written = last.then(() => writeThose(isDue))
    last = written.catch(() => undefined)
    return written
  }

  function write(): Promise<void> {
    const now = clock.now().getTime()
    return writeNext(({ writtenAt }) => now - writtenAt >= restMs)
  }

  const loop = startLoop({
    intervalMs,
    onError,
    async run() {
      await write()
      return false
    },
  })

  return {
    saw({ accountId, keyId }, address) {
      const from = address.length > maxAddressLength ? '' : address
      const at = clock.now().getTime()
      const known = uses.get(keyId)
      if (known === undefined) uses.set(keyId, { accountId, keyId, at, from, writtenAt: 0 })
      else {
        known.at = at
        known.from = from
      }
    },
    write,
    async stop() {
      await loop.stop()
      await writeNext(() => true).catch(onError)
    },
  }
}
