import { type IdKind, idPattern, idPrefixes } from '../../contract/ids.ts'
import { cursorFault, type Page } from '../../contract/pagination.ts'
import { invalidField } from './errors.ts'

/** The form of an identifier clients get in `nextCursor`: what stands after its prefix. */
export function encodeCursor(id: string): string {
  return id.slice(id.indexOf('_') + 1)
}

/**
 * The identifier inside `cursor`: the last one of the page before. Undefined on the first page.
 * Throws `validation_error` for anything that `encodeCursor` did not make of an identifier.
 */
export function decodeCursor(kind: IdKind, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const id = `${idPrefixes[kind]}_${cursor}`
  if (!idPattern(kind).test(id)) throw invalidField('query.cursor', cursorFault)
  return id
}

/**
 * One page of rows read with `limit + 1` as their limit: the extra row only tells that there is a
 * next page.
 *
 * @param idOf The identifier the rows are ordered by.
 */
export function pageOfRows<Row, Item>(
  rows: readonly Row[],
  { limit, idOf, toItem }: { limit: number; idOf: (row: Row) => string; toItem: (row: Row) => Item },
): Page<Item> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    data: shown.map(toItem),
    nextCursor: rows.length > limit && last !== undefined ? encodeCursor(idOf(last)) : null,
  }
}
