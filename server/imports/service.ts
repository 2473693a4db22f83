import { importLimits } from '../../contract/import-files.ts'
import type { CreateImport, Import } from '../../contract/imports.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { AudienceService } from '../audiences/service.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Db, type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { csvRow } from '../lib/csv.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { findProperties } from '../subscribers/properties.ts'
import { createUploadDecoder } from './decode-upload.ts'
import {
  cancelImport,
  countUnfinished,
  deleteUpload,
  endUpload,
  findImport,
  type ImportRow,
  insertImport,
  selectFailures,
  selectImports,
} from './queries.ts'
import { readHead } from './read-head.ts'
import { canceledMeanwhile, inUtf8, storeFile } from './store-upload.ts'

/** Use cases for imports of contacts, each of one mode. Throws DomainErrors. */
export type ImportService = {
  /**
   * Stores a file as it arrives and has its rows read in the background. Throws `audience_not_found`, `conflict` when
   * the account has five imports that have not ended, `payload_too_large`, and `rule_violation` as `readHead` and for a
   * file that is not text.
   *
   * @param db Not a transaction: a file may take long to arrive.
   */
  create(db: Db, scope: Scope, options: CreateImport, file: AsyncIterable<Buffer>): Promise<Import>
  /** Returns imports, newest first. */
  list(handle: Handle, scope: Scope, query: PageQuery): Promise<Page<Import>>
  get(handle: Handle, scope: Scope, id: string): Promise<Import>
  /** Ends an import: the rows after the batch under way are not read. One that has ended stays as it is. */
  cancel(handle: Handle, scope: Scope, id: string): Promise<Import>
  /** Returns the failed rows as CSV, page by page. Throws `not_found` at once. */
  failedRows(handle: Handle, scope: Scope, id: string): Promise<AsyncGenerator<string>>
}

export type ImportServiceOptions = {
  clock: Clock
  audiences: Pick<AudienceService, 'get'>
  /** Makes a worker look for imports. */
  wake: () => void
}

/** Failed rows read at a time. */
const failuresAtOnce = 500

export function createImportService({ clock, audiences, wake }: ImportServiceOptions): ImportService {
  async function find(handle: Handle, { accountId, mode }: Scope, id: string): Promise<ImportRow> {
    const row = await findImport(handle, { accountId, id, mode })
    if (row === undefined) throw notFound('import', id)
    return row
  }

  async function assertAudience(handle: Handle, accountId: string, id: string): Promise<void> {
    await audiences.get(handle, accountId, id).catch((error) => {
      if (!(error instanceof DomainError) || error.code !== 'not_found') throw error
      throw new DomainError('audience_not_found', `There is no audience "${id}" in this account.`)
    })
  }

  return {
    async create(db, scope, options, file) {
      const { accountId, mode } = scope
      const { audienceId, conflict = 'skip', status = 'active', events = 'true', fileName = null } = options
      await assertAudience(db, accountId, audienceId)
      const declared = await findProperties(db, accountId)
      const decoder = createUploadDecoder(options.encoding)
      const text = inUtf8(file, decoder)
      const first = await beginningOf(text)
      const { delimiter, columns, bytes, suppressesAs } = readHead(first.toString(), {
        delimiter: options.delimiter,
        mapping: options.columns,
        propertyKeys: declared.map(({ key }) => key),
      })
      const at = clock.now()
      const key = { accountId, id: newId('import', at) }
      await inTransaction(db, async (trx) => {
        await lockAccount(trx, accountId)
        if ((await countUnfinished(trx, accountId)) >= importLimits.unfinished) throw tooMany()
        const read = { delimiter, encoding: decoder.encoding, columns, suppressesAs, position: bytes }
        const chosen = { fileName, conflict, contactStatus: status, emitsEvents: events === 'true' }
        await insertImport(trx, { ...key, mode, audienceId, ...chosen, ...read, at })
      })
      try {
        await storeFile({ db, clock }, key, { first, rest: text })
        // The encoding may have turned out to be another one on the way.
        const { encoding } = decoder
        if (!(await endUpload(db, key, { encoding, at: clock.now() }))) throw canceledMeanwhile()
      } catch (error) {
        await deleteUpload(db, key).catch(() => undefined)
        throw error
      }
      wake()
      return toImport(await find(db, scope, key.id))
    },
    async list(handle, scope, { limit, cursor }) {
      const page = { after: decodeCursor('import', cursor), limit: limit + 1 }
      return pageOfRows(await selectImports(handle, scope, page), { limit, idOf: ({ id }) => id, toItem: toImport })
    },
    async get(handle, scope, id) {
      return toImport(await find(handle, scope, id))
    },
    async cancel(handle, scope, id) {
      return inTransaction(handle, async (trx) => {
        await find(trx, scope, id)
        await cancelImport(trx, { accountId: scope.accountId, id }, clock.now())
        return toImport(await find(trx, scope, id))
      })
    },
    async failedRows(handle, scope, id) {
      const { columns } = await find(handle, scope, id)
      return failedRowsOf(
        handle,
        { accountId: scope.accountId, id },
        columns.map(({ column }) => column),
      )
    },
  }
}

/** Reads so much of a file that its head is in it, if it is not too long. */
async function beginningOf(text: AsyncGenerator<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  let size = 0
  while (size <= importLimits.headBytes) {
    const { value, done } = await text.next()
    if (done) break
    pieces.push(value)
    size += value.length
  }
  return Buffer.concat(pieces)
}

async function* failedRowsOf(
  handle: Handle,
  key: { accountId: string; id: string },
  columns: readonly string[],
): AsyncGenerator<string> {
  yield csvRow([...columns, 'import_row', 'import_reason'])
  for (let after = 0; ; ) {
    const rows = await selectFailures(handle, key, { after, limit: failuresAtOnce })
    // A row with other cells than the head has is filled up, so that the last two are in their columns.
    const cellsOf = (cells: readonly string[]) => columns.map((_, place) => cells[place] ?? '')
    if (rows.length > 0) {
      yield rows.map((row) => csvRow([...cellsOf(row.cells), row.rowNumber, row.reason])).join('')
    }
    after = rows.at(-1)?.rowNumber ?? after
    if (rows.length < failuresAtOnce) return
  }
}

function tooMany(): DomainError {
  return new DomainError(
    'conflict',
    `The account has ${importLimits.unfinished} imports that have not ended, which is the limit: wait for one, or cancel one.`,
  )
}

function toImport(row: ImportRow): Import {
  return {
    id: row.id,
    mode: row.mode,
    audienceId: row.audience_id,
    fileName: row.file_name,
    status: row.status,
    conflict: row.conflict,
    contactStatus: row.contact_status,
    events: row.emits_events,
    delimiter: row.delimiter as Import['delimiter'],
    encoding: row.encoding as Import['encoding'],
    columns: row.columns,
    bytes: Number(row.bytes),
    bytesRead: Math.min(Number(row.position), Number(row.bytes)),
    rowsRead: Number(row.rows_read),
    created: Number(row.rows_created),
    updated: Number(row.rows_updated),
    skipped: Number(row.rows_skipped),
    suppressed: Number(row.rows_suppressed),
    failed: Number(row.rows_failed),
    failureReason: row.failure_reason,
    createdAt: row.created_at.toISOString(),
    startedAt: row.started_at?.toISOString() ?? null,
    endedAt: row.ended_at?.toISOString() ?? null,
  }
}
