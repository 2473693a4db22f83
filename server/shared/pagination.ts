import { type IdKind, idPattern, idPrefixes } from '../../contract/ids.ts'
import { cursorFault, type Page } from '../../contract/pagination.ts'
import { invalidField } from './errors.ts'

/** Returns the cursor for an identifier, as clients see it in `nextCursor`: the part after the prefix. */
export function encodeCursor(id: string): string {
  return id.slice(id.indexOf('_') + 1)
}

/**
 * Returns the identifier inside `cursor`, which is the last one of the page before. Returns undefined on the first
 * page. Throws `validation_error` for a cursor that `encodeCursor` did not make.
 */
export function decodeCursor(kind: IdKind, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const id = `${idPrefixes[kind]}_${cursor}`
  if (!idPattern(kind).test(id)) throw invalidField('query.cursor', cursorFault)
  return id
}

/**
 * Returns one page of rows that were read with a limit of `limit + 1`. The extra row only shows that there is a next
 * page.
 *
 * @param options.idOf Returns the identifier that the rows are ordered by.
 * @param options.lookedTo The identifier to continue after, where the rows are fewer and not the last. Default: null,
 * they are the last.
 */
export function pageOfRows<Row, Item>(
  rows: readonly Row[],
  options: { limit: number; idOf: (row: Row) => string; toItem: (row: Row) => Item; lookedTo?: string | null },
): Page<Item> {
  const { limit, idOf, toItem, lookedTo = null } = options
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const end = rows.length > limit && last !== undefined ? idOf(last) : lookedTo
  return { data: shown.map(toItem), nextCursor: end === null ? null : encodeCursor(end) }
}
