import fc from 'fast-check'
import { expect, test } from 'vitest'
import { base64Lines, quotedPrintable } from '../../server/message/encodings.ts'

/** RFC 2045 §6.7, read the other way round. */
function decode(encoded: string): Buffer {
  const joined = encoded.replaceAll('=\r\n', '')
  return Buffer.from(
    joined.replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
}

const pieces = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom('\r\n', ' ', '\t', '=', '.', 'é', '\r', '\n', 'x'.repeat(75), 'x'.repeat(76), '😀'.repeat(30))
    .map(Buffer.from),
)
const contents = fc.array(pieces).map((parts) => Buffer.concat(parts))

test('quoted-printable comes back byte for byte, in lines of 76 characters of US-ASCII that do not end in a space', () => {
  fc.assert(
    fc.property(contents, (content) => {
      const encoded = quotedPrintable(content).toString('latin1')
      expect(decode(encoded).equals(content)).toBe(true)
      for (const line of encoded.split('\r\n')) expect(line).toMatch(/^(?:[\t !-~]{0,75}[!-~])?$/)
    }),
    { numRuns: 300 },
  )
})

test.each([
  ['a=b', 'a=3Db'],
  ['grün ', 'gr=C3=BCn=20'],
  ['a \r\nb\t', 'a=20\r\nb=09'],
  ['\r\n', '\r\n'],
  ['x'.repeat(76), 'x'.repeat(76)],
  ['x'.repeat(77), `${'x'.repeat(75)}=\r\nxx`],
  ['x'.repeat(74).concat('='), `${'x'.repeat(74)}=\r\n=3D`],
])('quoted-printable of %j is %j', (content, encoded) => {
  expect(quotedPrintable(Buffer.from(content)).toString()).toBe(encoded)
})

test('base64 comes back byte for byte, in lines of 76 characters', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      const lines = base64Lines(Buffer.from(bytes)).toString().split('\r\n')
      expect(Buffer.from(lines.join(''), 'base64')).toEqual(Buffer.from(bytes))
      expect(lines.slice(0, -1).every((line) => line.length === 76)).toBe(true)
      expect(lines.at(-1)?.length).toBeLessThanOrEqual(76)
      expect(bytes.length === 0 || lines.at(-1) !== '').toBe(true)
    }),
  )
})
