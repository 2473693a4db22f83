import type { Audience } from '../../contract/audiences.ts'
import { importLimits, isZip } from '../../contract/import-files.ts'
import type { CreateImport, Import } from '../../contract/imports.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { asksNobody } from '../audiences/contact-batch.ts'
import type { AudienceService } from '../audiences/service.ts'
import { type NewAuditEntry, record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { createKeyedSemaphore } from '../lib/semaphore.ts'
import { brokenRule, DomainError, liveKeyNeeded, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { findProperties } from '../subscribers/properties.ts'
import { topicDefaults } from '../topics/choices.ts'
import { deleteAllChunks } from './chunk-queries.ts'
import { createUploadDecoder } from './decode-upload.ts'
import { failedRowsOf } from './failed-rows.ts'
import {
  cancelImport,
  countUnfinished,
  deleteUpload,
  endUpload,
  findImport,
  type ImportRow,
  insertImport,
  type NewImport,
  type StoredFile,
  selectImports,
} from './queries.ts'
import { readHead } from './read-head.ts'
import { chunksAtOnce } from './retention.ts'
import { beginningOf, canceledMeanwhile, inUtf8, storeFile } from './store-upload.ts'
import { storeZipFiles } from './store-zip-files.ts'
import { storeZip } from './stored-zip.ts'

/** Use cases for imports of contacts, each of one mode. Throws DomainErrors. */
export type ImportService = {
  /**
   * Stores a file as it arrives and has its rows read in the background: a CSV file, or a ZIP of them, which is told
   * from its first bytes. Throws `audience_not_found`, `topic_not_found`, `conflict` when the account has five imports that have not ended,
   * `payload_too_large`, and `rule_violation` as `readHead` and `storeZipFiles` and for a file that is not text.
   *
   * @param db Not a transaction: a file may take long to arrive.
   */
  create(db: Db, scope: AuthoredScope, options: CreateImport, file: AsyncIterable<Buffer>): Promise<Import>
  /** Returns imports, newest first. */
  list(handle: Handle, scope: Scope, query: PageQuery): Promise<Page<Import>>
  get(handle: Handle, scope: Scope, id: string): Promise<Import>
  /** Ends an import: the rows after the batch under way are not read. One that has ended stays as it is. */
  cancel(handle: Handle, scope: AuthoredScope, id: string): Promise<Import>
  /** Returns the failed rows as CSV, page by page. Throws `not_found` at once. */
  failedRows(handle: Handle, scope: Scope, id: string): Promise<AsyncGenerator<string>>
}

export type ImportServiceOptions = {
  clock: Clock
  audiences: Pick<AudienceService, 'get'>
  /** Makes a worker look for imports. */
  wake: () => void
}

/** The fields of a new import that are known before its file is read. */
type Wanted = Omit<NewImport, 'delimiter' | 'encoding' | 'columns' | 'suppressesAs' | 'position'>

type Upload = {
  scope: AuthoredScope
  options: CreateImport
  propertyKeys: readonly string[]
  file: AsyncGenerator<Buffer>
}

const neverAborted = new AbortController().signal

export function createImportService({ clock, audiences, wake }: ImportServiceOptions): ImportService {
  // Of an account one ZIP is unpacked at a time, so that many of them take no more of the service than one file does.
  const unpacking = createKeyedSemaphore({ permits: Number.POSITIVE_INFINITY, holdersPerKey: 1 })

  async function find(handle: Handle, { accountId, mode }: Scope, id: string): Promise<ImportRow> {
    const row = await findImport(handle, { accountId, id, mode })
    if (row === undefined) throw notFound('import', id)
    return row
  }

  async function audienceOf(handle: Handle, accountId: string, id: string): Promise<Audience> {
    return audiences.get(handle, accountId, id).catch((error) => {
      if (!(error instanceof DomainError) || error.code !== 'not_found') throw error
      throw new DomainError('audience_not_found', `There is no audience "${id}" in this account.`)
    })
  }

  async function insert(db: Db, given: NewImport): Promise<void> {
    await inTransaction(db, async (trx) => {
      await lockAccount(trx, given.accountId)
      if ((await countUnfinished(trx, given.accountId)) >= importLimits.unfinished) throw tooMany()
      await insertImport(trx, given)
    })
  }

  async function audit(
    trx: Trx,
    { accountId, author, mode }: AuthoredScope,
    { id, fileName, audienceId }: Pick<Wanted, 'id' | 'fileName' | 'audienceId'>,
    action: NewAuditEntry['action'],
  ): Promise<void> {
    const target = { type: 'import', id, name: fileName } as const
    await record(trx, { accountId, at: clock.now(), author, action, target, details: { mode, audienceId } })
  }

  /** Has the file of an import stored, and lets the workers begin. Of one that is refused nothing stays. */
  async function store(db: Db, scope: AuthoredScope, wanted: Wanted, file: () => Promise<StoredFile>): Promise<void> {
    try {
      const stored = await file()
      await inTransaction(db, async (trx) => {
        if (!(await endUpload(trx, wanted, { ...stored, at: clock.now() }))) throw canceledMeanwhile()
        await audit(trx, scope, wanted, 'import.created')
      })
    } catch (error) {
      await deleteUpload(db, wanted).catch(() => undefined)
      throw error
    }
  }

  async function storeAsCsv(db: Db, wanted: Wanted, { scope, options, propertyKeys, file }: Upload): Promise<void> {
    const decoder = createUploadDecoder(options.encoding)
    const rest = inUtf8(file, decoder)
    const first = await beginningOf(rest)
    const { delimiter, columns: mapping } = options
    const head = readHead(first.toString(), { delimiter, mapping, propertyKeys })
    const { bytes: position, ...read } = head
    await insert(db, { ...wanted, ...read, encoding: decoder.encoding, position })
    await store(db, scope, wanted, async () => {
      await storeFile({ db, clock }, wanted, { first, rest })
      // The encoding may have turned out to be another one on the way.
      return { ...read, encoding: decoder.encoding }
    })
  }

  async function storeAsZip(db: Db, wanted: Wanted, { scope, options, propertyKeys, file }: Upload): Promise<void> {
    const unknown = { delimiter: 'comma', encoding: 'utf-8', columns: [], suppressesAs: null, position: 0 }
    await insert(db, { ...wanted, ...unknown })
    await store(db, scope, wanted, async () => {
      const size = await storeZip({ db, clock }, wanted, file)
      const release = await unpacking.acquire({ key: wanted.accountId }, neverAborted)
      try {
        return await storeZipFiles({ db, clock }, wanted, { mode: wanted.mode, options, propertyKeys, size })
      } finally {
        release?.()
      }
    })
    // Retention deletes what stays.
    const { accountId, id } = wanted
    await deleteAllChunks(db, { accountId, id }, { table: 'import_zip_chunks', limit: chunksAtOnce }).catch(
      () => undefined,
    )
  }

  return {
    async create(db, scope, options, file) {
      const { accountId, mode } = scope
      const { audienceId, conflict = 'skip', status = 'active', topics, events = 'true', fileName = null } = options
      const { doubleOptIn } = await audienceOf(db, accountId, audienceId)
      if (status === 'pending' && doubleOptIn === null) throw brokenRule('query.status', asksNobody)
      if (status === 'active' && doubleOptIn !== null && mode === 'test') {
        throw liveKeyNeeded('Importing people as active into an audience with double opt-in')
      }
      const topicIds = [...new Set(topics?.split(','))]
      await checkTopics(db, accountId, topicIds)
      const propertyKeys = (await findProperties(db, accountId)).map(({ key }) => key)
      const at = clock.now()
      const key = { accountId, id: newId('import', at) }
      const chosen = { fileName, conflict, contactStatus: status, topicIds, emitsEvents: events === 'true' }
      const wanted = { ...key, mode, audienceId, ...chosen, at }
      const { beginning, whole } = await peek(file)
      await (isZip(beginning)
        ? storeAsZip(db, wanted, { scope, options, propertyKeys, file: whole })
        : storeAsCsv(db, wanted, { scope, options, propertyKeys, file: whole }))
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
        const { file_name: fileName, audience_id: audienceId } = await find(trx, scope, id)
        const isCanceled = await cancelImport(trx, { accountId: scope.accountId, id }, clock.now())
        if (isCanceled) await audit(trx, scope, { id, fileName, audienceId }, 'import.canceled')
        return toImport(await find(trx, scope, id))
      })
    },
    async failedRows(handle, scope, id) {
      return failedRowsOf(handle, await find(handle, scope, id))
    },
  }
}

/** Reads the first bytes of a file, enough for `isZip` where it has them. `whole` yields them again. */
async function peek(file: AsyncIterable<Buffer>): Promise<{ beginning: Buffer; whole: AsyncGenerator<Buffer> }> {
  const pieces = file[Symbol.asyncIterator]()
  let beginning = Buffer.alloc(0)
  while (beginning.length < 4) {
    const { value, done } = await pieces.next()
    if (done) break
    beginning = Buffer.concat([beginning, value])
  }
  async function* whole(): AsyncGenerator<Buffer> {
    try {
      if (beginning.length > 0) yield beginning
      for (;;) {
        const { value, done } = await pieces.next()
        if (done) return
        yield value
      }
    } finally {
      await pieces.return?.()
    }
  }
  return { beginning, whole: whole() }
}

/** Throws `topic_not_found`. */
async function checkTopics(handle: Handle, accountId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const known = await topicDefaults(handle, accountId)
  const missing = ids.find((id) => !known.has(id))
  if (missing === undefined) return
  throw new DomainError('topic_not_found', `There is no topic with the id "${missing}" in this account.`, {
    details: [{ path: 'query.topics', message: 'must be topics of the account' }],
  })
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
    topics: row.topic_ids,
    events: row.emits_events,
    delimiter: row.delimiter as Import['delimiter'],
    encoding: row.encoding as Import['encoding'],
    columns: row.columns,
    files: (row.files ?? []).map((file) =>
      file.readAs === 'ignored'
        ? { name: file.name, readAs: file.readAs, ignoredBecause: file.reason, columns: [] }
        : { name: file.name, readAs: file.readAs, ignoredBecause: null, columns: file.columns },
    ),
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
