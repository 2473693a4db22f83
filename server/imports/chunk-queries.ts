import { sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import type { ImportKey } from './queries.ts'

/** Where the pieces of a file are, or of a ZIP until it is unpacked. */
export type ChunkTable = 'import_chunks' | 'import_zip_chunks'

/**
 * Appends a piece of the file, or of the ZIP. Of a file, the import keeps how many bytes there are. Returns false when the
 * import no longer takes any: it was canceled.
 */
export async function insertChunk(
  trx: Trx,
  { accountId, id }: ImportKey,
  { position, bytes, at }: { position: number; bytes: Buffer; at: Date },
  table: ChunkTable = 'import_chunks',
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('imports')
    .set({ worked_at: at, ...(table === 'import_chunks' && { bytes: position + bytes.length }) })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('status', '=', 'uploading')
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  await trx.insertInto(table).values({ account_id: accountId, import_id: id, position, bytes }).execute()
  return true
}

/** Returns the piece of the file, or of the ZIP, that has the byte at `position`, and where it begins. */
export async function readChunk(
  handle: Handle,
  { accountId, id }: ImportKey,
  position: number,
  table: ChunkTable = 'import_chunks',
): Promise<{ position: number; bytes: Buffer } | undefined> {
  const row = await handle
    .selectFrom(table)
    .select(['position', 'bytes'])
    .where('account_id', '=', accountId)
    .where('import_id', '=', id)
    .where('position', '<=', String(position))
    .orderBy('position', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row === undefined ? undefined : { position: Number(row.position), bytes: row.bytes }
}

/** Deletes pieces of the file that end at `position` or before. */
export async function deleteChunks(handle: Handle, { accountId, id }: ImportKey, position: number): Promise<void> {
  await sql`
    DELETE FROM import_chunks WHERE account_id = ${accountId} AND import_id = ${id}
      AND position < ${position} AND position + octet_length(bytes) <= ${position}
  `.execute(handle)
}

/** Deletes a file or a ZIP, so many pieces in each statement. */
export async function deleteAllChunks(
  handle: Handle,
  { accountId, id }: ImportKey,
  { table, limit }: { table: ChunkTable; limit: number },
): Promise<void> {
  for (let deleted = limit; deleted === limit; ) {
    const { numAffectedRows = 0n } = await sql`
      DELETE FROM ${sql.table(table)} WHERE account_id = ${accountId} AND import_id = ${id} AND position = ANY(ARRAY(
        SELECT position FROM ${sql.table(table)} WHERE account_id = ${accountId} AND import_id = ${id}
        ORDER BY position LIMIT ${limit}
      ))
    `.execute(handle)
    deleted = Number(numAffectedRows)
  }
}
