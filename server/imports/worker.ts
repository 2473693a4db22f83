import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { startLoop } from '../lib/polling-loop.ts'
import { timeout } from '../lib/timer.ts'
import type { Outbox } from '../outbox/append.ts'
import { isTaken } from '../outbox/taken.ts'
import { findProperties } from '../subscribers/properties.ts'
import { deleteChunks } from './chunk-queries.ts'
import { partAt } from './parts.ts'
import { claimImport, endImport, type ImportKey, type ImportRow, releaseImport } from './queries.ts'
import { createRowReader } from './read-row.ts'
import { BrokenFileError, type FileRow, readRows } from './read-rows.ts'
import { type BatchMeans, LostImportError, type RowBatch, runBatch } from './run-batch.ts'

export type ImportWorkerOptions = {
  db: Db
  clock: Clock
  logger: Pick<Logger, 'info' | 'error'>
  outbox: Outbox
  confirmations: BatchMeans['confirmations']
  pollIntervalMs: number
  /** Time after which others take the import of a worker that died. Milliseconds. Default: 20,000. */
  leaseMs?: number
  /** Rows in a transaction. Default: 1,000. */
  batchRows?: number
  /** Called behind each batch. For tests. */
  onBatch?: (key: ImportKey) => void
}

export type ImportWorker = {
  /** Makes the worker look for imports now. */
  wake(): void
  /** Ends behind the batch under way. What is left is read on by this or another process. */
  stop(): Promise<void>
}

/** Time for one import before others get their turn. Milliseconds. */
const turnMs = 10_000
/** Milliseconds between two looks whether an event is taken, and the longest wait of a batch: well within a lease. */
const eventWaits = { lookMs: 20, longestMs: 1_000 }
/** Accounts whose last events are remembered from one turn to the next. */
const remembered = 1_000
/** Bytes of cells in a transaction, however few rows they are. */
const batchBytes = 4 * 1_048_576

/**
 * Starts the worker that reads imports, one at a time: each account has 10 seconds in turn. It reads the next rows while
 * PostgreSQL works on a batch.
 */
export function startImportWorker(options: ImportWorkerOptions): ImportWorker {
  const { db, clock, logger, outbox, confirmations, pollIntervalMs } = options
  const { leaseMs = 20_000, batchRows = 1_000, onBatch } = options
  const lease = randomUUID()
  let isStopping = false
  /** The last events of the last batch of an account and of the one before, of whatever import. Empty: there is none. */
  const lastEvents = new LRUCache<string, readonly [ofLast: string, ofBefore: string]>({ max: remembered })
  /** The account that had the last turn. */
  let lastAccount = ''
  const leaseEnd = () => new Date(clock.now().getTime() + leaseMs)

  const loop = startLoop({
    intervalMs: pollIntervalMs,
    onError: (error) => logger.error({ err: error }, 'an import failed for a moment; trying again'),
    async run() {
      if (isStopping) return false
      const row = await claimImport(db, { lease, at: clock.now(), until: leaseEnd(), after: lastAccount })
      if (row === undefined) return false
      lastAccount = row.account_id
      const key = { accountId: row.account_id, id: row.id }
      try {
        await takeTurn(row, key)
      } catch (error) {
        if (!(error instanceof LostImportError)) throw error
      } finally {
        await releaseImport(db, key, lease)
      }
      return true
    },
  })

  async function takeTurn(row: ImportRow, key: ImportKey): Promise<void> {
    const end = (failureReason: string | null) => endImport(db, key, { lease, failureReason, at: clock.now() })
    const part = partAt(row)
    if (part === null) return end(null)
    const { columns, suppressesAs } = part
    const declared = await findProperties(db, row.account_id)
    const readRow = createRowReader({ columns, declared, contactStatus: row.contact_status, suppressesAs })
    const events = notingLast(outbox)
    const means = { db, clock, outbox: events, confirmations, lease, leaseMs }
    const startedAt = performance.now()
    const position = Number(row.position)
    const file = readRows(db, key, { part, begin: position })
    /** Rows that were read and are in no batch yet. */
    let waiting: FileRow[] = []
    let next: Promise<Filled> | null = null
    try {
      // The count is still that of the file before.
      const fileRowsBefore = position === part.begin ? 0 : Number(row.file_rows_read)
      let filled = await fill({ from: position, rowsBefore: Number(row.rows_read), fileRowsBefore })
      for (;;) {
        const { batch, isEnd, fault } = filled
        const { rowsBefore, fileRowsBefore, rows } = batch
        if (rows.length > 0 || batch.to > batch.from) {
          const [ofLast, ofBefore] = lastEvents.get(row.account_id) ?? ['', '']
          await untilTaken(ofBefore)
          // The next rows are read while PostgreSQL works.
          const count = { rowsBefore: rowsBefore + rows.length, fileRowsBefore: fileRowsBefore + rows.length }
          next = isEnd ? null : fill({ from: batch.to, ...count })
          next?.catch(() => undefined)
          const ended = await runBatch(means, { row, part }, batch)
          if (ended === 'no audience') return await end('the audience was deleted')
          if (ended !== 'done') return await end(ended.failed)
          lastEvents.set(row.account_id, [events.last(), ofLast])
          await deleteChunks(db, key, batch.to)
          onBatch?.(key)
        }
        if (isEnd) {
          // The next file of a ZIP is read in another turn.
          if (fault === null && !part.isLast) return
          const place = part.inZip === null ? '' : `in ${part.inZip.name}, `
          await end(fault === null ? null : `${place}behind row ${fileRowsBefore + rows.length}: ${fault}`)
          logger.info({ import: key.id, fault }, 'an import has ended')
          return
        }
        if (next === null || isStopping || performance.now() - startedAt > turnMs) return
        filled = await next
      }
    } finally {
      // Rows that were read in advance are read again in the next turn.
      await next?.catch(() => undefined)
      await file.return(undefined)
    }

    async function fill(begin: Pick<RowBatch, 'from' | 'rowsBefore' | 'fileRowsBefore'>): Promise<Filled> {
      const { from } = begin
      const batch: RowBatch = { ...begin, rows: [], to: from }
      try {
        while (batch.rows.length < batchRows && batch.to - from < batchBytes) {
          if (waiting.length === 0) {
            const { value, done } = await file.next()
            if (done) return { batch: { ...batch, to: part?.end ?? batch.to }, isEnd: true, fault: null }
            waiting = value.toReversed()
          }
          const next = waiting.pop()
          if (next === undefined) continue
          batch.rows.push({ cells: next.cells, read: readRow(next.cells) })
          batch.to = next.end
        }
        return { batch, isEnd: false, fault: null }
      } catch (error) {
        if (!(error instanceof BrokenFileError)) throw error
        return { batch, isEnd: true, fault: error.message }
      }
    }
  }

  /** Waits for an event to be taken, so that an import does not run ahead of the fan-out. */
  async function untilTaken(eventId: string): Promise<void> {
    if (eventId === '') return
    const since = performance.now()
    while (!isStopping && performance.now() - since < eventWaits.longestMs && !(await isTaken(db, eventId))) {
      await timeout(eventWaits.lookMs)
    }
  }

  return {
    wake: () => loop.wake(),
    async stop() {
      isStopping = true
      await loop.stop()
    },
  }
}

type Filled = { batch: RowBatch; isEnd: boolean; fault: string | null }

/** Returns an outbox that knows the last event that was appended to it. Empty: there is none. */
function notingLast(outbox: Outbox): Outbox & { last(): string } {
  let last = ''
  return {
    async append(...given) {
      const ids = await outbox.append(...given)
      last = ids.at(-1) ?? last
      return ids
    },
    last: () => last,
  }
}
