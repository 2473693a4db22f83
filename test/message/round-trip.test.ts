import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bothPass, composer, parsed, partsOf, verified } from '../support/worlds/message.ts'

/** Any text, with what matters in messages often in it. */
const texts = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(
        '\n',
        '\r\n',
        '.\n',
        '\n.\n',
        ' \n',
        '--',
        '--=_postern',
        'From ',
        '=',
        '=3D',
        '\t',
        'x'.repeat(999),
      ),
    ),
    { maxLength: 20 },
  )
  .map((parts) => parts.join(''))

const lines = fc.string({ unit: 'grapheme', maxLength: 120 }).map((text) => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ''))

const contents = fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes))
const types = fc.constantFrom(
  'image/png',
  'text/plain',
  'text/html; charset=utf-8',
  'message/rfc822',
  'application/pdf',
)
const attachments = fc.array(
  fc.record({
    filename: fc.constantFrom('a.png', 'ü.txt'),
    contentType: types,
    contentId: fc.constantFrom(null, 'one'),
    content: contents,
  }),
  { maxLength: 3 },
)

const inOneLine = (text: string | undefined) => (text ?? '').replace(/\s+/gu, ' ').trim()
const withLf = (text: string | false | undefined) => (text || '').replace(/\r\n/g, '\n').replace(/\n$/, '')

test('any message comes back as it was given, signed so that it verifies, whatever is in it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ text: fc.option(texts), html: fc.option(texts), attachments, subject: lines, name: lines }),
      async ({ text, html, attachments, subject, name }) => {
        const recipients = [{ position: 0, kind: 'to', name, address: 'ann@example.org' }] as const
        const parts = partsOf({ email: { subject }, content: { text, html, attachments }, recipients })
        const message = await composer.compose(parts, null)
        const mail = await parsed(message)

        expect(await verified(message)).toEqual(bothPass)
        expect(message.toString('latin1')).not.toMatch(/[^\r]\n|\r[^\n]|[\x80-\xff]/)
        for (const line of message.toString('latin1').split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
        expect(withLf(mail.text)).toBe(withLf(text ?? ''))
        expect(withLf(mail.html)).toBe(withLf(html ?? ''))
        expect(inOneLine(mail.subject)).toBe(inOneLine(subject))
        expect([mail.to].flat()[0]?.value).toEqual([{ address: 'ann@example.org', name: inOneLine(name) }])
        const given = attachments.map(({ content }) => content.toString('hex')).sort()
        expect(mail.attachments.map(({ content }) => content.toString('hex')).sort()).toEqual(given)
      },
    ),
    { numRuns: 200 },
  )
})
