import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dataOf } from '../../server/smtp/dot-stuffing.ts'

test.each([
  ['Hello\r\n', 'Hello\r\n.\r\n'],
  ['Hello', 'Hello\r\n.\r\n'],
  ['', '\r\n.\r\n'],
  ['.\r\n', '..\r\n.\r\n'],
  ['a\r\n.\r\nb\r\n', 'a\r\n..\r\nb\r\n.\r\n'],
  ['a\r\n..b.\r\n', 'a\r\n...b.\r\n.\r\n'],
  ['a\r\n.', 'a\r\n..\r\n.\r\n'],
  ['a\n.\r\nb\r\n', 'a\n..\r\nb\r\n.\r\n'],
  ['a\n.\nb\r\n', 'a\n..\nb\r\n.\r\n'],
])('%j is sent as %j', (message, data) => {
  expect(dataOf(Buffer.from(message)).toString()).toBe(data)
})

const pieces = fc.constantFrom('a', '.', '\r\n', '\r\n.', '\n', '\n.', 'ä')

test('whatever a message holds, it ends at its end alone and arrives as it was', () => {
  fc.assert(
    fc.property(fc.array(pieces), (parts) => {
      const message = parts.join('')
      const data = dataOf(Buffer.from(message)).toString()
      // No line of a single dot before the end, for servers that end lines at a bare line feed too.
      expect(`\n${data}`.match(/\n\.\r?\n/g)).toEqual(['\n.\r\n'])
      const received = data.slice(0, -'.\r\n'.length).replace(/(^|\n)\./g, '$1')
      expect(received).toBe(message.endsWith('\n') ? message : `${message}\r\n`)
    }),
  )
})
