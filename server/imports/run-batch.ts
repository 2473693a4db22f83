import type { ErrorCode } from '../../contract/errors.ts'
import { importLimits } from '../../contract/import-files.ts'
import { addContacts, type BatchRow, type BatchMeans as ContactMeans } from '../audiences/contact-batch.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import { DomainError } from '../shared/errors.ts'
import { suppressedAmong, suppressImported } from '../suppressions/imported.ts'
import type { FilePart } from './parts.ts'
import { advanceImport, type FailedRow, type ImportRow, insertFailures, type RowCounts } from './queries.ts'
import type { ReadRow } from './read-row.ts'

/** Rows of a file that are done in one transaction. */
export type RowBatch = {
  rows: { cells: readonly string[]; read: ReadRow }[]
  /** Bytes of the file where it begins and ends. */
  from: number
  to: number
  /** Rows of the import before it, and of its file. */
  rowsBefore: number
  fileRowsBefore: number
}

export type BatchMeans = ContactMeans & { db: Db; lease: string; leaseMs: number }

/** The import is not this worker's any more: it was canceled, or another worker took it over. */
export class LostImportError extends Error {
  override name = 'LostImportError'
}

/** The outcome of a batch. With `no audience`, or a reason that ends the import, nothing was done. */
export type BatchEnd = 'done' | 'no audience' | { failed: string }

/**
 * Does a batch in one transaction with the position behind it: whatever happens, each row is done once and counted once.
 * Throws `LostImportError`; the transaction is then rolled back.
 */
export async function runBatch(
  means: BatchMeans,
  { row, part }: { row: ImportRow; part: FilePart },
  batch: RowBatch,
): Promise<BatchEnd> {
  const { db, clock, lease, leaseMs } = means
  const { account_id: accountId, id, mode, conflict, audience_id: audienceId } = row
  const failures: FailedRow[] = []
  const fail = (place: number, reason: string) => {
    const { cells = [] } = batch.rows[place] ?? {}
    const inFile = part.inZip && { file: part.inZip.file, row: batch.fileRowsBefore + place + 1 }
    failures.push({ rowNumber: batch.rowsBefore + place + 1, inFile, reason, cells: keptCells(cells) })
  }
  const given = batch.rows.flatMap(({ read }, place) => (read.kind === 'contact' ? [{ place, row: read.row }] : []))
  const suppressions = batch.rows.flatMap(({ read }) => (read.kind === 'suppression' ? [read] : []))
  for (const [place, { read }] of batch.rows.entries()) {
    if (read.kind === 'failed') fail(place, read.reason)
    else if (read.kind === 'suppression' && mode === 'test') fail(place, testKeyFault)
  }
  const counts: RowCounts = { created: 0, updated: 0, skipped: 0, suppressed: 0, failed: 0 }
  if (mode === 'live') counts.suppressed = suppressions.length

  return unlessRefused(() =>
    inTransaction(db, async (trx): Promise<BatchEnd> => {
      const gone = part.inZip === null ? new Set() : await suppressedOf(trx, accountId, { given, suppressions })
      const contacts = given.filter(({ row: { email } }) => !gone.has(addressKey(email)))
      counts.suppressed += given.length - contacts.length
      const rows = contacts.map((contact) => contact.row)
      const added = { audienceId, rows, conflict, topicIds: row.topic_ids, emitsEvents: row.emits_events }
      const results = await addContacts(trx, means, { accountId, mode }, added)
      if (results === null) return 'no audience'
      for (const [index, result] of results.entries()) {
        if (result.outcome === 'created') counts.created += 1
        else if (result.outcome === 'updated') counts.updated += 1
        else if (result.outcome === 'unchanged') counts.skipped += 1
        else if (result.outcome === 'refused') fail(contacts[index]?.place ?? 0, result.reason)
      }
      const at = clock.now()
      if (mode === 'live' && suppressions.length > 0) {
        const entries = suppressions.map(({ address, reason }) => ({
          address,
          addressKey: addressKey(address),
          reason,
        }))
        await suppressImported(trx, { accountId, entries, at })
      }
      counts.failed = failures.length
      const kept = failures.slice(0, Math.max(0, importLimits.failedRows - Number(row.rows_failed)))
      if (kept.length > 0) await insertFailures(trx, { accountId, id }, kept)
      const until = new Date(at.getTime() + leaseMs)
      const fileRows = batch.fileRowsBefore + batch.rows.length
      const step = { lease, from: batch.from, to: batch.to, fileRows, counts, at, until }
      if (!(await advanceImport(trx, { accountId, id }, step))) throw new LostImportError()
      row.rows_failed = String(Number(row.rows_failed) + counts.failed)
      return 'done'
    }),
  )
}

/** Error codes with which no email to confirm can be sent. Only the account or the operator can remove the cause. */
const endings: readonly ErrorCode[] = ['domain_not_verified', 'public_url_needed', 'authentication_error']

async function unlessRefused(run: () => Promise<BatchEnd>): Promise<BatchEnd> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof DomainError && endings.includes(error.code)) return { failed: error.message }
    throw error
  }
}

/**
 * Returns which people of a ZIP are on the suppression list, or come onto it with this batch: they left by another file of
 * it, or before. They become no contacts.
 */
async function suppressedOf(
  trx: Trx,
  accountId: string,
  { given, suppressions }: { given: readonly { row: BatchRow }[]; suppressions: readonly { address: string }[] },
): Promise<Set<string>> {
  const keys = given.map(({ row }) => addressKey(row.email))
  const found = keys.length === 0 ? [] : await suppressedAmong(trx, accountId, keys)
  return new Set([...found, ...suppressions.map(({ address }) => addressKey(address))])
}

const testKeyFault = 'to put an address on the suppression list, the import needs a live key'

/** Cells as they are kept: without U+0000, which PostgreSQL cannot store, and cut where the row is too long. */
function keptCells(cells: readonly string[]): string[] {
  let left: number = importLimits.failedRowCharacters
  return cells.slice(0, importLimits.columns).map((cell) => {
    const kept = cell.slice(0, left).replaceAll('\u0000', '\ufffd').toWellFormed()
    left -= kept.length
    return kept
  })
}
