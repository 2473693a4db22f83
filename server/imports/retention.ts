import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { deleteAllChunks } from './chunk-queries.ts'
import { cancelStaleUploads, deleteOldFailures, deleteOldRows, selectLeftFiles } from './queries.ts'

/** An upload that receives no bytes for this long is abandoned. Milliseconds. */
const uploadPatienceMs = 15 * 60_000
/** How long ended imports and their failed rows are kept. Milliseconds. */
const keptMs = 30 * 24 * 3_600_000
const filesAtOnce = 20
export const chunksAtOnce = 32
const failuresAtOnce = 5_000

/**
 * Gives up files that do not arrive, deletes the files of imports that have ended, and imports that ended 30 days ago, in
 * small transactions. Call it every minute.
 */
export async function deleteEndedImports({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  const at = clock.now()
  await cancelStaleUploads(db, { before: new Date(at.getTime() - uploadPatienceMs), at })
  for (const key of await selectLeftFiles(db, filesAtOnce)) {
    await deleteAllChunks(db, key, { table: 'import_zip_chunks', limit: chunksAtOnce })
    await deleteAllChunks(db, key, { table: 'import_chunks', limit: chunksAtOnce })
  }
  const before = new Date(at.getTime() - keptMs)
  while ((await deleteOldFailures(db, before, failuresAtOnce)) === failuresAtOnce);
  await deleteOldRows(db, before)
}
