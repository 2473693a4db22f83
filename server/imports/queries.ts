import { type Selectable, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { textArrays } from '../database/arrays.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { ImportsTable } from '../database/tables/imports.ts'

export type ImportRow = Selectable<ImportsTable>

/** Identifies an import. */
export type ImportKey = { accountId: string; id: string }

export type NewImport = ImportKey & {
  mode: Mode
  audienceId: string
  fileName: string | null
  conflict: ImportRow['conflict']
  contactStatus: ImportRow['contact_status']
  topicIds: readonly string[]
  emitsEvents: boolean
  delimiter: string
  encoding: string
  suppressesAs: ImportRow['suppresses_as']
  columns: ImportRow['columns']
  /** Where the first row begins. */
  position: number
  at: Date
}

/** Inserts an import whose file arrives. */
export async function insertImport(handle: Handle, given: NewImport): Promise<void> {
  await handle
    .insertInto('imports')
    .values({
      account_id: given.accountId,
      id: given.id,
      mode: given.mode,
      audience_id: given.audienceId,
      file_name: given.fileName,
      status: 'uploading',
      conflict: given.conflict,
      contact_status: given.contactStatus,
      topic_ids: [...given.topicIds],
      emits_events: given.emitsEvents,
      delimiter: given.delimiter,
      encoding: given.encoding,
      suppresses_as: given.suppressesAs,
      columns: JSON.stringify(given.columns),
      position: given.position,
      failure_reason: null,
      created_at: given.at,
      started_at: null,
      ended_at: null,
      lease: null,
      worked_at: given.at,
    })
    .execute()
}

const unfinished = ['uploading', 'waiting', 'running'] as const

export async function countUnfinished(handle: Handle, accountId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM imports
    WHERE account_id = ${accountId} AND status = ANY(${[...unfinished]}::text[])
  `.execute(handle)
  return rows[0]?.count ?? 0
}

/** The properties of a file that are known when it is stored. */
export type StoredFile = {
  delimiter: string
  encoding: string
  columns: ImportRow['columns']
  /** Of a ZIP. Default: it is one CSV file. */
  files?: ImportRow['files']
}

/** Lets the workers begin. Returns false when the import was canceled meanwhile. */
export async function endUpload(
  trx: Trx,
  { accountId, id }: ImportKey,
  { delimiter, encoding, columns, files = null, at }: StoredFile & { at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('imports')
    .set({
      status: 'waiting',
      delimiter,
      encoding,
      columns: JSON.stringify(columns),
      files: files === null ? null : JSON.stringify(files),
      worked_at: at,
    })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('status', '=', 'uploading')
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Deletes an import whose file did not arrive, with the pieces that did. */
export async function deleteUpload(handle: Handle, { accountId, id }: ImportKey): Promise<void> {
  await handle
    .deleteFrom('imports')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('status', '=', 'uploading')
    .execute()
}

export async function findImport(
  handle: Handle,
  { accountId, id, mode }: ImportKey & { mode: Mode },
): Promise<ImportRow | undefined> {
  return handle
    .selectFrom('imports')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('mode', '=', mode)
    .executeTakeFirst()
}

/** @param page.after Id of the last import of the page before. Newest first. */
export async function selectImports(
  handle: Handle,
  { accountId, mode }: { accountId: string; mode: Mode },
  page: { after: string | undefined; limit: number },
): Promise<ImportRow[]> {
  let query = handle.selectFrom('imports').selectAll().where('account_id', '=', accountId).where('mode', '=', mode)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

/** Ends an import that has not ended. */
export async function cancelImport(trx: Trx, { accountId, id }: ImportKey, at: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('imports')
    .set({ status: 'canceled', ended_at: at, lease: null })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('status', 'in', unfinished)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * Leases the import of an account that has waited longest, one of an account at a time. Accounts take turns in the order
 * of their ids, from the one behind `after`: however many imports an account has, it gets as many turns as one with a
 * single import. Returns undefined when there is none.
 *
 * @param lease The worker that takes it.
 */
export async function claimImport(
  handle: Handle,
  { lease, at, until, after }: { lease: string; at: Date; until: Date; after: string },
): Promise<ImportRow | undefined> {
  // For all accounts.
  const { rows } = await sql<ImportRow>`
    UPDATE imports SET lease = ${lease}::uuid, leased_until = ${until}, worked_at = ${at}, status = 'running',
      started_at = coalesce(started_at, ${at})
    WHERE (account_id, id) = (
      SELECT account_id, id FROM imports AS i
      WHERE status IN ('uploading', 'waiting', 'running') AND status <> 'uploading' AND leased_until <= ${at}
        AND NOT EXISTS (
          SELECT FROM imports AS other WHERE other.account_id = i.account_id AND other.id <> i.id
            AND other.status = 'running' AND other.leased_until > ${at}
        )
      ORDER BY account_id <= ${after}, account_id, worked_at LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING *
  `.execute(handle)
  return rows[0]
}

/** Lets go of a lease, so that it is taken when its turn comes again. */
export async function releaseImport(handle: Handle, { accountId, id }: ImportKey, lease: string): Promise<void> {
  await handle
    .updateTable('imports')
    .set({ lease: null, leased_until: new Date(0) })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .execute()
}

/** How many rows of a batch came to which end. */
export type RowCounts = {
  created: number
  updated: number
  skipped: number
  suppressed: number
  failed: number
}

/**
 * Moves an import on behind a batch. Returns false when it is no longer at `from`, was canceled, or is leased by another
 * worker: the transaction must then roll back.
 */
export async function advanceImport(
  trx: Trx,
  { accountId, id }: ImportKey,
  step: { lease: string; from: number; to: number; fileRows: number; counts: RowCounts; at: Date; until: Date },
): Promise<boolean> {
  const { created, updated, skipped, suppressed, failed } = step.counts
  const { rows } = await sql`
    UPDATE imports SET position = ${step.to}, file_rows_read = ${step.fileRows}, leased_until = ${step.until}, worked_at = ${step.at},
      rows_read = rows_read + ${created + updated + skipped + suppressed + failed},
      rows_created = rows_created + ${created}, rows_updated = rows_updated + ${updated},
      rows_skipped = rows_skipped + ${skipped}, rows_suppressed = rows_suppressed + ${suppressed},
      rows_failed = rows_failed + ${failed}
    WHERE account_id = ${accountId} AND id = ${id} AND lease = ${step.lease}::uuid AND status = 'running'
      AND position = ${step.from}
    RETURNING id
  `.execute(trx)
  return rows.length > 0
}

/** Ends an import that a worker has. `failureReason`: why it cannot go on. */
export async function endImport(
  handle: Handle,
  { accountId, id }: ImportKey,
  { lease, failureReason, at }: { lease: string; failureReason: string | null; at: Date },
): Promise<void> {
  await handle
    .updateTable('imports')
    .set(({ ref }) => ({
      status: failureReason === null ? 'completed' : 'failed',
      failure_reason: failureReason,
      ended_at: at,
      lease: null,
      // Only empty lines follow the last row.
      ...(failureReason === null && { position: sql<number>`${ref('bytes')}` }),
    }))
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('lease', '=', lease)
    .where('status', '=', 'running')
    .execute()
}

export type FailedRow = {
  rowNumber: number
  /** Of a ZIP: the place of its file, and its number in it. */
  inFile: { file: number; row: number } | null
  reason: string
  cells: readonly string[]
}

/** Keeps failed rows. */
export async function insertFailures(
  trx: Trx,
  { accountId, id }: ImportKey,
  rows: readonly FailedRow[],
): Promise<void> {
  const { reasons, cells } = await textArrays({
    reasons: rows.map(({ reason }) => reason),
    cells: rows.map((row) => JSON.stringify(row.cells)),
  })
  await sql`
    INSERT INTO import_failures (account_id, import_id, row_number, file, file_row, reason, cells)
    SELECT ${accountId}, ${id}, row_number, file, file_row, reason,
      ARRAY(SELECT jsonb_array_elements_text(cells::jsonb))
    FROM unnest(${rows.map(({ rowNumber }) => rowNumber)}::bigint[],
      ${rows.map(({ inFile }) => inFile?.file ?? null)}::integer[],
      ${rows.map(({ inFile }) => inFile?.row ?? null)}::bigint[], ${reasons}::text[], ${cells}::text[])
      AS f (row_number, file, file_row, reason, cells)
  `.execute(trx)
}

/** Returns failed rows in order. */
export async function selectFailures(
  handle: Handle,
  { accountId, id }: ImportKey,
  page: { after: number; limit: number },
): Promise<FailedRow[]> {
  const rows = await handle
    .selectFrom('import_failures')
    .select(['row_number', 'file', 'file_row', 'reason', 'cells'])
    .where('account_id', '=', accountId)
    .where('import_id', '=', id)
    .where('row_number', '>', String(page.after))
    .orderBy('row_number')
    .limit(page.limit)
    .execute()
  return rows.map(({ row_number, file, file_row, reason, cells }) => ({
    rowNumber: Number(row_number),
    inFile: file === null ? null : { file, row: Number(file_row) },
    reason,
    cells,
  }))
}

/** Returns imports of all accounts that have ended and whose file or ZIP is still there. */
export async function selectLeftFiles(handle: Handle, limit: number): Promise<ImportKey[]> {
  const { rows } = await sql<{ account_id: string; id: string }>`
    SELECT account_id, id FROM imports AS i WHERE ended_at IS NOT NULL AND (EXISTS (
      SELECT FROM import_chunks WHERE account_id = i.account_id AND import_id = i.id OFFSET 0
    ) OR EXISTS (
      SELECT FROM import_zip_chunks WHERE account_id = i.account_id AND import_id = i.id OFFSET 0
    )) ORDER BY ended_at DESC LIMIT ${limit}
  `.execute(handle)
  return rows.map((row) => ({ accountId: row.account_id, id: row.id }))
}

/** Ends uploads of all accounts whose last piece came before `before`: their client or process is gone. */
export async function cancelStaleUploads(handle: Handle, { before, at }: { before: Date; at: Date }): Promise<void> {
  await handle
    .updateTable('imports')
    .set({ status: 'failed', failure_reason: 'the file did not arrive in full: send it again', ended_at: at })
    .where('status', '=', 'uploading')
    .where('worked_at', '<', before)
    .execute()
}

/** Deletes some failed rows of one import of any account that ended before `before`. Returns how many. */
export async function deleteOldFailures(handle: Handle, before: Date, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM import_failures WHERE ctid = ANY(ARRAY(
      SELECT f.ctid FROM imports AS i CROSS JOIN LATERAL (
        SELECT ctid FROM import_failures WHERE account_id = i.account_id AND import_id = i.id LIMIT ${limit}
      ) AS f WHERE i.ended_at < ${before} LIMIT ${limit}
    ))
  `.execute(handle)
  return Number(numAffectedRows)
}

/** Deletes imports of all accounts that ended before `before`, whose failed rows are deleted. */
export async function deleteOldRows(handle: Handle, before: Date): Promise<void> {
  await handle.deleteFrom('imports').where('ended_at', '<', before).execute()
}
