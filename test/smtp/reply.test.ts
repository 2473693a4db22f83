import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InvalidReplyError, type Reply, ReplyReader, textOfReply } from '../../server/smtp/reply.ts'

function read(text: string): Reply[] {
  return [...new ReplyReader().push(Buffer.from(text))]
}

test.each<[string, Reply]>([
  ['250 2.1.0 Ok', { code: 250, enhanced: '2.1.0', lines: ['Ok'] }],
  ['250', { code: 250, enhanced: null, lines: [''] }],
  ['354 End with a dot', { code: 354, enhanced: null, lines: ['End with a dot'] }],
  ['550-5.1.1 No\r\n550 5.1.1 such user', { code: 550, enhanced: '5.1.1', lines: ['No', 'such user'] }],
  ['250-mx.test\r\n250-SIZE 10\r\n250 HELP', { code: 250, enhanced: null, lines: ['mx.test', 'SIZE 10', 'HELP'] }],
  ['554 no such user (#5.1.1)', { code: 554, enhanced: '5.1.1', lines: ['no such user (#5.1.1)'] }],
  ['421 4.7.0: slow down', { code: 421, enhanced: '4.7.0', lines: ['slow down'] }],
  ['250 10.0.0.1 is you', { code: 250, enhanced: null, lines: ['10.0.0.1 is you'] }],
  ['250 Ok\r', { code: 250, enhanced: null, lines: ['Ok'] }],
  ['250 a\u2028b\rc', { code: 250, enhanced: null, lines: ['a\u2028b\rc'] }],
  ['550 Größe 10 überschritten', { code: 550, enhanced: null, lines: ['Größe 10 überschritten'] }],
])('replies are read: %j', (text, reply) => {
  expect(read(`${text}\r\n`)).toEqual([reply])
  expect(read(`${text.replaceAll('\r\n', '\n')}\n`)).toEqual([reply])
})

test('replies are the same in whatever pieces they come', () => {
  const bytes = Buffer.from('220-Hello\r\n220 you\r\n250 2.1.0 Größe\r\n354 Go\r\n')
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
      const reader = new ReplyReader()
      const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length]
      const replies = places.flatMap((place, at) => [...reader.push(bytes.subarray(places[at - 1] ?? 0, place))])
      expect(replies).toEqual([...new ReplyReader().push(bytes)])
      expect(replies.map(({ code }) => code)).toEqual([220, 250, 354])
    }),
  )
})

test('replies are handed over before what makes no sense behind them is refused', () => {
  const replies = new ReplyReader().push(Buffer.from('250 2.0.0 Taken\r\n\r\n'))
  expect(replies.next().value).toEqual({ code: 250, enhanced: '2.0.0', lines: ['Taken'] })
  expect(() => replies.next()).toThrow(InvalidReplyError)
})

test('replies are no trouble with many line ends that end no line', () => {
  expect(() => read(`250 ${'\r'.repeat(1_000_000)}x\r\n`)).toThrow(InvalidReplyError)
})

test.each([
  ['no code', 'hello\r\n'],
  ['a code of two digits', '25 Ok\r\n'],
  ['a code of none of the classes', '650 Ok\r\n'],
  ['an informational code', '150 Ok\r\n'],
  ['a line that does not end', `250 ${'x'.repeat(5000)}`],
  ['a line that is too long', `250 ${'x'.repeat(5000)}\r\n`],
  ['too many lines', '250-x\r\n'.repeat(101)],
  ['something else on the port', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
])('replies are refused with %s', (_name, text) => {
  expect(() => read(text)).toThrow(InvalidReplyError)
})

test('a reply for people is one printable line', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1 }), (lines) => {
      const text = textOfReply({ code: 550, enhanced: '5.7.1', lines })
      expect(text).toMatch(/^550 5\.7\.1/)
      expect(text).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
    }),
  )
  expect(textOfReply({ code: 550, enhanced: null, lines: ['a\u001b[31m', ' b'] })).toBe('550 a\\u001b[31m b')
})

test.each(['x', '\u001b', ' '])('a reply for people is not long, however long it was: %j', (character) => {
  const lines = Array.from({ length: 100 }, () => character.repeat(4000))
  expect(textOfReply({ code: 550, enhanced: '5.7.1', lines }).length).toBeLessThanOrEqual(1024)
})
