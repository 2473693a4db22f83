import type { Logger } from 'pino'
import type { Counter } from 'prom-client'
import type { Mode } from '../../contract/mode.ts'
import { requestLogBytesPerDay } from '../../contract/request-logs.ts'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { dayOf, insertLogs, type LogRow, type ScopeBytes } from './queries.ts'
import { type AnsweredByKey, bytesOf, rowOf } from './row.ts'

/**
 * Remembers requests and writes them behind their answers: up to 1,000 with one statement, once a second or when there
 * are 1,000. A process that ends without `stop` loses what is not written.
 */
export type RequestLogRecorder = {
  /** Notes a request. Never waits and never throws. Above the limits it is dropped and counted. */
  add(request: AnsweredByKey): void
  /** Writes everything that was added before. Rejects when that fails. */
  write(): Promise<void>
  /** Writes everything, and ends. */
  stop(): Promise<void>
}

export type RequestLogOptions = {
  db: Db
  clock: Clock
  logger: Logger
  /** Counts requests by `outcome`: `written`, or `dropped` above a limit or when they could not be written. */
  counter: Pick<Counter<'outcome'>, 'inc'>
  /** Milliseconds between two writes. Default: 1,000. */
  intervalMs?: number
  limits?: Partial<Limits>
}

type Limits = {
  /** Requests that wait to be written. Default: 10,000. */
  waiting: number
  /** Those of one account and mode. Default: 5,000, so that no account takes the place of all others. */
  waitingOfScope: number
  /** Bytes of what waits, as `bytesOf` counts them. Default: 32 Mi. */
  bytes: number
  /** Requests of one account and mode with status 401 or 429 between two writes. Default: 20. */
  refusedOfScope: number
  /**
   * Bytes that are written of one account and mode in a day. Default: `requestLogBytesPerDay`. Once a quarter of them is
   * used up, requests with status 401 or 429 are dropped.
   */
  bytesPerDay: number
}

const defaults: Limits = {
  waiting: 10_000,
  waitingOfScope: 5_000,
  bytes: 32 * 2 ** 20,
  refusedOfScope: 20,
  bytesPerDay: requestLogBytesPerDay,
}

/** The part of the bytes of a day up to which requests with status 401 or 429 are kept. */
const shareOfRefused = 0.25
/** Most rows of one statement. */
const batchSize = 1_000
/** Times that writing a batch is tried before it is dropped: about 25 seconds in all. */
const maxTries = 10
/** Milliseconds between two messages about requests that were dropped. */
const messagePauseMs = 60_000

/** A row that waits to be written, its scope as `keyOf` names it, and its bytes. */
type Waiting = { row: LogRow; key: string; bytes: number }

/** Rows of an account in one mode that wait to be written, and how many of them are of refused requests. */
type Share = { waiting: number; refused: number }

export function startRequestLogs(options: RequestLogOptions): RequestLogRecorder {
  const { db, clock, logger, counter, intervalMs = 1_000 } = options
  const limits = { ...defaults, ...options.limits }
  let queue: Waiting[] = []
  let bytes = 0
  const shares = new Map<string, Share>()
  /** Scopes that have used up their bytes of `fullOn`, and those that have no more for refused requests. */
  const full = new Set<string>()
  const closedToRefused = new Set<string>()
  let fullOn = ''
  /** Dropped since the last message about it. */
  let dropped = 0
  let toldAt = Number.NEGATIVE_INFINITY
  let tries = 0

  function drop(count: number): void {
    dropped += count
    counter.inc({ outcome: 'dropped' }, count)
  }

  function shareOf(key: string): Share {
    const known = shares.get(key)
    if (known !== undefined) return known
    const share = { waiting: 0, refused: 0 }
    shares.set(key, share)
    return share
  }

  function forget(batch: readonly Waiting[]): void {
    for (const one of batch) {
      bytes -= one.bytes
      shareOf(one.key).waiting -= 1
    }
  }

  async function insert(batch: readonly Waiting[]): Promise<void> {
    const day = clock.now()
    const rows = batch.map(({ row }) => row)
    const counts = await insertLogs(db, rows, { added: bytesByScope(batch), day })
    beginDay(day)
    for (const count of counts) {
      const key = keyOf(count.accountId, count.mode)
      if (count.bytes >= limits.bytesPerDay) full.add(key)
      // The holder of a revoked key must not use up the day, and so keep other requests out of the logs.
      if (count.bytes >= limits.bytesPerDay * shareOfRefused) closedToRefused.add(key)
    }
  }

  function beginDay(day: Date): void {
    if (fullOn === dayOf(day)) return
    full.clear()
    closedToRefused.clear()
    fullOn = dayOf(day)
  }

  /** Writes the first rows. Returns true when there are more for another batch. */
  async function writeBatch(): Promise<boolean> {
    const batch = queue.slice(0, batchSize)
    if (batch.length === 0) return false
    try {
      await insert(batch)
      counter.inc({ outcome: 'written' }, batch.length)
    } catch (error) {
      // A batch that cannot be written must not hold up those behind it for ever.
      if (++tries < maxTries) throw error
      drop(batch.length)
    }
    tries = 0
    queue = queue.slice(batch.length)
    forget(batch)
    return queue.length > 0
  }

  function tellDropped(pauseMs = messagePauseMs): void {
    if (dropped === 0 || performance.now() - toldAt < pauseMs) return
    toldAt = performance.now()
    logger.warn({ dropped }, 'requests are missing in the request logs: above a limit, or they could not be written')
    dropped = 0
  }

  function beginInterval(): void {
    beginDay(clock.now())
    for (const [key, share] of shares) {
      if (share.waiting === 0) shares.delete(key)
      else share.refused = 0
    }
  }

  /** One after the other, so that none writes what another is writing. */
  let last: Promise<unknown> = Promise.resolve()
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  async function writeAll(): Promise<void> {
    while (await writeBatch());
  }

  const loop = startLoop({
    intervalMs,
    onError: (err) => logger.warn({ err }, 'writing request logs failed; trying again'),
    async run() {
      tellDropped()
      beginInterval()
      await inTurn(writeBatch)
      return queue.length >= batchSize
    },
  })

  function hasRoom(key: string, { waiting, refused }: Share, isRefused: boolean): boolean {
    return (
      queue.length < limits.waiting &&
      bytes < limits.bytes &&
      waiting < limits.waitingOfScope &&
      !(isRefused && (refused >= limits.refusedOfScope || closedToRefused.has(key))) &&
      !full.has(key)
    )
  }

  return {
    add(request) {
      const key = keyOf(request.accountId, request.mode)
      const share = shareOf(key)
      // Such an answer costs a client nothing.
      const isRefused = request.status === 401 || request.status === 429
      if (!hasRoom(key, share, isRefused)) {
        drop(1)
        return
      }
      const row = rowOf(request)
      const one = { row, key, bytes: bytesOf(row) }
      queue.push(one)
      bytes += one.bytes
      share.waiting += 1
      if (isRefused) share.refused += 1
      if (queue.length === batchSize) loop.wake()
    },
    write: () => inTurn(writeAll),
    async stop() {
      await loop.stop()
      await inTurn(writeAll).catch((err) => {
        drop(queue.length)
        logger.warn({ err }, 'writing request logs failed while stopping')
      })
      tellDropped(0)
    },
  }
}

function keyOf(accountId: string, mode: Mode): string {
  return `${mode} ${accountId}`
}

/** Returns the bytes of rows by account and mode, sorted by both. */
function bytesByScope(batch: readonly Waiting[]): ScopeBytes[] {
  const found = new Map<string, ScopeBytes>()
  for (const { row, key, bytes } of batch) {
    const known = found.get(key)
    if (known !== undefined) known.bytes += bytes
    else found.set(key, { accountId: row.account_id, mode: row.mode, bytes })
  }
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, scope]) => scope)
}
