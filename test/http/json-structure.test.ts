import fc from 'fast-check'
import { expect, test } from 'vitest'
import { structuralBytes } from '../../server/http/json-structure.ts'

test('what is in strings does not count, whatever is in them', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const emptied = json.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '""')
      expect(structuralBytes(Buffer.from(json), Number.POSITIVE_INFINITY)).toBe(Buffer.byteLength(emptied))
    }),
  )
})

test.each([
  ['', 0],
  ['[1,2]', 5],
  ['"a"', 2],
  ['{"a":"}{[]"}', 7],
  ['"\\""', 2],
  ['"\\\\"[]', 4],
  ['"é😀"', 2],
  ['"unended [[[', 1],
  ['é', 2],
])('%s has %i', (json, count) => {
  expect(structuralBytes(Buffer.from(json), 100)).toBe(count)
})

test('counting stops where it is enough', () => {
  expect(structuralBytes(Buffer.from('[[[[[[[['), 3)).toBe(3)
})
