import { type IdKind, idPattern } from '../contract/ids.ts'
import type { Page } from '../contract/pagination.ts'
import { invalidField } from './errors.ts'

/** The opaque form of an identifier, as clients get it in `nextCursor`. */
export function encodeCursor(id: string): string {
  return Buffer.from(id, 'utf8').toString('base64url')
}

/**
 * The identifier inside `cursor`: the last one of the page before. Undefined on the first page.
 * Throws `validation_error` for anything that `encodeCursor` did not make of an identifier of `kind`.
 */
export function decodeCursor(kind: IdKind, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const id = Buffer.from(cursor, 'base64url').toString('utf8')
  // Decoding overlooks stray characters, so the way back is compared.
  if (!idPattern(kind).test(id) || encodeCursor(id) !== cursor) {
    throw invalidField('query.cursor', 'must be the `nextCursor` of a page of this list')
  }
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
