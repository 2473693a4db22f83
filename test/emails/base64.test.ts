import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBase64 } from '../../server/emails/base64.ts'

test('what was encoded is decoded to the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      expect(await decodeBase64(Buffer.from(bytes).toString('base64'))).toEqual(Buffer.from(bytes))
    }),
  )
})

test('only what an encoder makes is taken', async () => {
  const letters = fc.string({ unit: fc.constantFrom(...'AQgwEz09+/=-_ \n\tä'), maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(letters, async (text) => {
      const decoded = await decodeBase64(text)
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
])('text %s is refused', async (_, text) => {
  expect(await decodeBase64(text)).toBeNull()
})

test('tens of megabytes are no trouble, and others have their turn meanwhile', async () => {
  const order: string[] = []
  setImmediate(() => order.push('another'))
  const bytes = Buffer.alloc(30 * 2 ** 20, 'many bytes, none like the next')
  const text = bytes.toString('base64')
  const decoded = await decodeBase64(text)
  order.push('decoded')
  expect(decoded?.equals(bytes)).toBe(true)
  expect(order).toEqual(['another', 'decoded'])
})

test.each([
  ['the last character', -1],
  ['the first', 0],
  ['one in the middle', 20 * 2 ** 20],
  ['the last of the first slice', 2 ** 20 - 1],
])('of tens of megabytes, %s is looked at', async (_, index) => {
  const text = Buffer.alloc(30 * 2 ** 20, 0xfb).toString('base64')
  for (const wrong of '!-= ') {
    const at = index < 0 ? text.length + index : index
    expect(await decodeBase64(`${text.slice(0, at)}${wrong}${text.slice(at + 1)}`)).toBeNull()
  }
})
