import { mailchimpTimes } from '../../contract/import-files.ts'
import type { Handle } from '../database/connection.ts'
import type { ImportedFile } from '../database/tables/imports.ts'
import { csvRow } from '../lib/csv.ts'
import { readFilesOf } from './parts.ts'
import { type FailedRow, type ImportRow, selectFailures } from './queries.ts'

/** Failed rows read at a time. */
const failuresAtOnce = 500

/** Yields the failed rows of an import as CSV, with a head. */
export async function* failedRowsOf(handle: Handle, row: ImportRow): AsyncGenerator<string> {
  const { names, cellsOf } = row.files === null ? shapeOfFile(row.columns) : shapeOfZip(readFilesOf(row.files))
  yield csvRow(names)
  const key = { accountId: row.account_id, id: row.id }
  for (let after = 0; ; ) {
    const rows = await selectFailures(handle, key, { after, limit: failuresAtOnce })
    if (rows.length > 0) yield rows.map((failed) => csvRow(cellsOf(failed))).join('')
    after = rows.at(-1)?.rowNumber ?? after
    if (rows.length < failuresAtOnce) return
  }
}

/** How failed rows are written. */
type Shape = { names: string[]; cellsOf: (row: FailedRow) => (string | number)[] }

function shapeOfFile(columns: ImportRow['columns']): Shape {
  return {
    names: [...columns.map(({ column }) => column), 'import_row', 'import_reason'],
    // A row with other cells than the head has is filled up, so that the last two are in their columns.
    cellsOf: ({ cells, rowNumber, reason }) => [...columns.map((_, place) => cells[place] ?? ''), rowNumber, reason],
  }
}

/**
 * The columns of all files, each once. What a whole file says of its people stands in a column of their status: the file
 * of failed rows is one for all of them, and must mean the same when it is imported.
 */
function shapeOfZip(files: readonly ImportedFile[]): Shape {
  const columns = files.flatMap((file) => file.columns)
  const statusOf = columns.find(({ field }) => field === 'status')?.column
  const suppresses = files.some(({ readAs }) => readAs !== 'contacts')
  const status = statusOf ?? (suppresses ? 'status' : undefined)
  const own = new Set(columns.map(({ column }) => column).filter((name) => !mailchimpTimes.includes(name)))
  if (status !== undefined) own.add(status)
  const names = [...own]
  return {
    names: [...names, 'import_file', 'import_row', 'import_reason'],
    cellsOf({ cells, inFile, rowNumber, reason }) {
      const file = files[inFile?.file ?? 0]
      const byName = new Map(file?.columns.map(({ column }, place) => [column, cells[place] ?? '']))
      if (status !== undefined && file?.readAs === 'unsubscribe') byName.set(status, 'unsubscribed')
      if (status !== undefined && file?.readAs === 'hard_bounce') byName.set(status, 'cleaned')
      return [...names.map((name) => byName.get(name) ?? ''), file?.name ?? '', inFile?.row ?? rowNumber, reason]
    },
  }
}
