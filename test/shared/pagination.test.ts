import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newId } from '../../server/shared/ids.ts'
import { decodeCursor, encodeCursor, pageOfRows } from '../../server/shared/pagination.ts'

const id = newId('webhook', new Date())

describe('a cursor', () => {
  test('a cursor leads back to the identifier it was made of', () => {
    expect(decodeCursor('webhook', encodeCursor(id))).toBe(id)
    expect(decodeCursor('webhook', undefined)).toBeUndefined()
  })

  test.each([
    ['that is an identifier itself', id],
    ['with something added', `${encodeCursor(id)}=`],
    ['with a stray character', encodeCursor(id).replace(/^./, '$& ')],
    ['of an identifier with more after it', encodeCursor(`${id}\n`)],
  ])('%s is refused', (_, cursor) => {
    expect(() => decodeCursor('webhook', cursor)).toThrow(
      expect.objectContaining({
        code: 'validation_error',
        details: [expect.objectContaining({ path: 'query.cursor' })],
      }),
    )
  })

  test('a cursor of any other text is refused, never a fault', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (cursor) => {
        expect(() => decodeCursor('webhook', cursor)).toThrow(expect.objectContaining({ code: 'validation_error' }))
      }),
    )
  })
})

test('a page shows up to its limit, and a next one only when there is a row more', () => {
  const idOf = (row: string) => row
  const toItem = (row: string) => row.toUpperCase()
  expect(pageOfRows(['b', 'a'], { limit: 2, idOf, toItem })).toEqual({ data: ['B', 'A'], nextCursor: null })
  expect(pageOfRows(['c', 'b', 'a'], { limit: 2, idOf, toItem })).toEqual({
    data: ['C', 'B'],
    nextCursor: encodeCursor('b'),
  })
  expect(pageOfRows([], { limit: 2, idOf, toItem })).toEqual({ data: [], nextCursor: null })
})
