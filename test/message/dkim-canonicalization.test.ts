import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { relaxedBody, relaxedHeader, splitMessage } from '../../server/message/dkim-canonicalization.ts'

const body = (text: string) => relaxedBody(Buffer.from(text, 'latin1')).toString('latin1')

// RFC 6376 §3.4.5.
const example = Buffer.from('A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n')

test('the relaxed form of a header is that of the example in RFC 6376', () => {
  expect(splitMessage(example).fields.map(relaxedHeader)).toEqual(['a:X', 'b:Y Z'])
})

test('the relaxed form of a body is that of the example in RFC 6376', () => {
  expect(relaxedBody(splitMessage(example).body).toString()).toBe(' C\r\nD E\r\n')
})

test.each([
  ['', ''],
  ['\r\n', ''],
  ['\r\n\r\n', ''],
  [' \t\r\n \r\n', ''],
  ['x', 'x\r\n'],
  ['x\r\n', 'x\r\n'],
  ['x \t', 'x\r\n'],
  ['\r\nx', '\r\nx\r\n'],
  [' x', ' x\r\n'],
  ['x\r\n\r\n \r\ny', 'x\r\n\r\n\r\ny\r\n'],
  ['x\r\r\ny', 'x\r\r\ny\r\n'],
])('the relaxed form of the body %j is %j', (given, expected) => {
  expect(body(given)).toBe(expected)
})

test('the relaxed form of no body has the hash that RFC 6376 states', () => {
  const hash = createHash('sha256')
    .update(relaxedBody(Buffer.alloc(0)))
    .digest('base64')
  expect(hash).toBe('47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=')
})

test('the relaxed form keeps bytes that are no spaces but look like them', () => {
  expect(relaxedHeader({ name: 'Subject', value: ' \xa0x\xa0 ' })).toBe('subject:\xa0x\xa0')
  expect(body('x\xa0\x0b\x0c\r\n')).toBe('x\xa0\x0b\x0c\r\n')
})

test('the relaxed form of any body is that of the sentences in RFC 6376, one after the other', () => {
  const texts = fc.array(fc.constantFrom(' ', '\t', '\r\n', 'x', 'y z', '\r\n\r\n')).map((parts) => parts.join(''))
  fc.assert(
    fc.property(texts, (text) => {
      const lines = text.split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''))
      while (lines.at(-1) === '') lines.pop()
      expect(body(text)).toBe(lines.map((line) => `${line}\r\n`).join(''))
    }),
  )
})

test('the relaxed form of a hostile body takes no longer than of any other', () => {
  const spaces = ' '.repeat(8 * 2 ** 20)
  expect(body(`${spaces}x${spaces}`)).toBe(' x\r\n')
  expect(body('\r\n'.repeat(4 * 2 ** 20))).toBe('')
})
