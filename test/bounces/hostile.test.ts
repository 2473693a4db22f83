import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { factsOf } from '../../server/bounces/notification-facts.ts'
import { readNotification } from '../../server/bounces/read.ts'

/* Anybody can write an inbound message: no bytes make the reader throw, and none make it slow. */

const kinds = ['dsn', 'arf', 'auto-reply', 'unreadable']
const directory = join(import.meta.dirname, 'corpus')
const corpus = readdirSync(directory).map((name) => readFileSync(join(directory, name)))

const email = { id: 'email', recipients: [{ position: 0, addressKey: 'ada@example.org' }] }

/** Reads it, and what follows from it. */
function read(bytes: Buffer): string {
  const notification = readNotification(bytes)
  const facts = factsOf(notification, email, {
    at: new Date(),
    keyOf: (address) => address.toLowerCase(),
    position: null,
  })
  expect(JSON.stringify(facts).length).toBeLessThan(2_000_000)
  return notification.kind
}

test('any bytes are read as something', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 5_000 }), (bytes) => {
      expect(kinds).toContain(read(Buffer.from(bytes)))
    }),
    { numRuns: 500 },
  )
})

const lines = fc.constantFrom(
  'Content-Type: multipart/report; boundary="b"',
  'Content-Type: message/delivery-status',
  'Content-Type: message/feedback-report',
  'Content-Type: message/rfc822',
  'Content-Transfer-Encoding: base64',
  'Content-Transfer-Encoding: quoted-printable',
  'Content-Type: text/plain; charset=no-such-thing',
  'X-Failed-Recipients: ada@example.org,,@,a@b',
  'Final-Recipient: rfc822; ada@example.org',
  'Original-Recipient: utf-8; \\x{FFFFFF}\\x{0}@example.org',
  'Action: failed',
  'Status: 5.1.1',
  'Diagnostic-Code: smtp; 550-5.1.1 no 550 5.1.1 no',
  'Feedback-Type: abuse',
  'Version: 1',
  'Hi. This is the qmail-send program at example.org.',
  'From: mailer-daemon@example.org',
  'Subject: failure notice',
  '--b',
  '--b--',
  '',
  ' ',
  '\t folded',
  ':',
  '=3D=',
)

test('anything made of the lines of notifications is read as something', () => {
  fc.assert(
    fc.property(fc.array(lines, { maxLength: 60 }), fc.constantFrom('\r\n', '\n'), (chosen, end) => {
      expect(kinds).toContain(read(Buffer.from(chosen.join(end))))
    }),
    { numRuns: 2_000 },
  )
})

test('whatever is cut out of a notification, doubled or overwritten, something is read', () => {
  const damage = fc.record({ at: fc.nat(5_000), length: fc.nat(300), by: fc.uint8Array({ maxLength: 20 }) })
  fc.assert(
    fc.property(fc.constantFrom(...corpus), fc.array(damage, { minLength: 1, maxLength: 5 }), (sample, damages) => {
      const broken = damages.reduce(
        (bytes, { at, length, by }) => Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(at + length)]),
        sample,
      )
      expect(kinds).toContain(read(broken))
    }),
    { numRuns: 1_000 },
  )
})

const megabyte = 1_048_576
const many = (text: string) => text.repeat(Math.ceil(megabyte / text.length))
const report = 'Content-Type: message/delivery-status\n\n'
const nested = Array.from(
  { length: 5_000 },
  (_, depth) => `Content-Type: multipart/mixed; boundary="b${depth}"\n\n--b${depth}\n`,
).join('')

test.each([
  ['empty lines', many('\n')],
  ['one line without an end', many('a')],
  ['half the ends of lines', `Subject: ${'\r'.repeat(megabyte / 2)}x\n`],
  ['headers', many('A: b\n')],
  ['a header that is folded for ever', `Subject: a\n${many(' a\n')}`],
  ['a header of spaces', `Content-Type: ${many(' ')};`],
  ['parts', `Content-Type: multipart/mixed; boundary=b\n\n${many('--b\n\n\n')}`],
  ['parts without an end', `Content-Type: multipart/mixed; boundary=b\n\n${many('--b')}`],
  ['multiparts in multiparts', nested],
  ['messages in messages', many('Content-Type: message/rfc822\n\n')],
  ['recipients', report + many('Final-Recipient: rfc822; ada@example.org\nAction: failed\n\n')],
  ['an address of spaces', `${report}Final-Recipient: rfc822; ${many(' ')}@\nAction: failed\n`],
  ['an address of brackets', `${report}Final-Recipient: rfc822; a@b ${many('(')}\nAction: failed\n`],
  [
    'a diagnostic of codes',
    `${report}Final-Recipient: rfc822; a@b\nAction: failed\nDiagnostic-Code: ${many('550-5.1.1 ')}`,
  ],
  ['a charset that decodes slowly', `Content-Type: text/plain; charset=iso-2022-jp\n\n${many('\x1b$B')}`],
  ['quoted spaces', `Content-Transfer-Encoding: quoted-printable\n\n${many('= ')}`],
  ['tags', `From: postmaster@a\nContent-Type: text/html\n\nundeliverable ${many('<')}`],
  ['addresses in a letter', `From: postmaster@a\n\nundeliverable ${many('a@b.example 550 5.1.1 ')}`],
  ['half addresses in a letter', `From: postmaster@a\n\nundeliverable ${many('a@')}`],
  ['fields in a letter', `\n\n${many('feedback-type\t\t\t\t')}`],
  ['links in a report', `\n\n${many('list-unsubscribe: </u/')}`],
])('text that is made to be slow is read: %s', (_, text) => {
  expect(kinds).toContain(read(Buffer.from(text)))
  expect(kinds).toContain(read(Buffer.from(text.replaceAll('\n', '\r\n'))))
})
