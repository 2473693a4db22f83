import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBase64 } from '../../server/emails/base64.ts'

test('what was encoded is decoded to the same bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(decodeBase64(Buffer.from(bytes).toString('base64'))).toEqual(Buffer.from(bytes))
    }),
  )
})

test('only what an encoder makes is taken', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'AQgwEz09+/=-_ \n\tä'), maxLength: 12 })
  fc.assert(
    fc.property(letters, (text) => {
      const decoded = decodeBase64(text)
      if (decoded !== null) expect(decoded.toString('base64')).toBe(text)
      else expect(Buffer.from(text, 'base64').toString('base64')).not.toBe(text)
    }),
    { numRuns: 5_000 },
  )
})

test.each([
  ['without its padding', 'aGFsbG8'],
  ['with too much padding', 'aGFsbG8=='],
  ['with padding in the middle', 'aGE=bGxv'],
  ['of padding alone', '===='],
  ['with bits left over', 'aGFsbG9='],
  ['of the alphabet for URLs', '-_-_'],
  ['with a line break', 'aGFs\nbG8='],
  ['behind a prefix', 'data:text/plain;base64,aGFsbG8='],
])('text %s is refused', (_, text) => {
  expect(decodeBase64(text)).toBeNull()
})

test('tens of megabytes are no trouble', () => {
  const text = Buffer.alloc(30 * 2 ** 20, 0xfb).toString('base64')
  expect(decodeBase64(text)?.length).toBe(30 * 2 ** 20)
  expect(decodeBase64(`${text.slice(0, -1)}!`)).toBeNull()
})
