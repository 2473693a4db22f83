import { execFileSync, spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fileNameParameters } from '../../server/message/file-names.ts'
import { composer, parsed, partsOf } from '../support/worlds/message.ts'

const terms = { filename: 'terms.pdf', contentType: 'application/pdf', contentId: null, content: Buffer.from('terms') }

const names = [
  'terms.pdf',
  'two words.pdf',
  'a"b;c,d=e.txt',
  "it's 100%41 (1) [2].txt",
  'späte Grüße.txt',
  '請求書.pdf',
  '😀.png',
  '=?UTF-8?Q?evil=2Eexe?=',
  `${'long name '.repeat(20)}.txt`,
  `${'é'.repeat(250)}.txt`,
  '😀'.repeat(255),
  'ﷺ'.repeat(100),
]

/** Everything that stands within quotes in the headers of a message. */
function quotedIn(message: string): string[] {
  return message.match(/"(?:[^"\\]|\\.)*"/gs) ?? []
}

async function composed(filename: string, contentType = terms.contentType): Promise<Buffer> {
  const content = { attachments: [{ ...terms, filename, contentType }] }
  return composer.compose(partsOf({ content, signer: null }), null)
}

test.each(names)(
  'the name of a file comes back whole, in ASCII and short lines, with no encoded word in quotes: %s',
  async (name) => {
    const message = await composed(name)
    const text = message.toString('latin1')
    const mail = await parsed(message)

    // mailparser decodes such a name once more; Python judges it below.
    if (!name.includes('=?')) expect(mail.attachments[0]?.filename).toBe(name)
    expect(text).not.toMatch(/[^\r\n\t -~]/)
    for (const within of quotedIn(text)) expect(within).not.toContain('=?')
    for (const line of text.split('\r\n')) expect(line.length).toBeLessThanOrEqual(300)
  },
)

test('the name of a file is told twice: in full as RFC 2231 has it, and in plain ASCII', () => {
  expect(fileNameParameters('filename', 'terms.pdf')).toEqual(['filename="terms.pdf"'])
  expect(fileNameParameters('filename', 'späte Grüße.txt')).toEqual([
    "filename*=utf-8''sp%C3%A4te%20Gr%C3%BC%C3%9Fe.txt",
    'filename="spate Gru_e.txt"',
  ])
  const long = fileNameParameters('name', `${'é'.repeat(40)}.docx`)
  expect(long.slice(0, 2)).toEqual([`name*0*=utf-8''${'%C3%A9'.repeat(10)}`, `name*1*=${'%C3%A9'.repeat(11)}`])
  expect(long.at(-1)).toBe(`name="${'e'.repeat(40)}.docx"`)
  expect(fileNameParameters('name', `${'é'.repeat(250)}.docx`).at(-1)).toBe(`name="${'e'.repeat(55)}.docx"`)
  expect(fileNameParameters('name', 'half \ud800 of it')).toEqual([
    "name*=utf-8''half%20%EF%BF%BD%20of%20it",
    'name="half _ of it"',
  ])
})

test('the name of a file is that of the file, whatever its type says', async () => {
  const message = await composed('terms.pdf', "application/pdf; name=evil.exe; name*=utf-8''evil.exe; version=1.7")

  expect(message.toString()).toContain('Content-Type: application/pdf; version=1.7;\r\n name="terms.pdf"\r\n')
})

test('the name of a file may be any text, in a tree of parts too', async () => {
  const texts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 })
  const clean = texts.map((text) => text.replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}/]/gu, '_').trim() || '_')
  await fc.assert(
    fc.asyncProperty(clean, async (filename) => {
      const files = [
        { ...terms, filename, contentId: 'one' },
        { ...terms, filename },
      ]
      const content = { html: '<p>Hello</p>', attachments: files }
      const message = await composer.compose(partsOf({ content, signer: null }), null)
      const mail = await parsed(message)

      expect(mail.attachments.map((attachment) => attachment.filename)).toEqual([filename, filename])
      for (const within of quotedIn(message.toString('latin1'))) expect(within).not.toContain('=?')
    }),
    { numRuns: 100 },
  )
})

const hasPython = spawnSync('python3', ['--version']).status === 0
const title = `a parser in another language reads the same name${hasPython ? '' : ' (skipped: python3 is not on this machine)'}`

const program = `
import email, email.policy, json, sys
read = lambda one: next(email.message_from_string(one, policy=email.policy.default).iter_attachments())
parts = [read(one) for one in json.load(sys.stdin)]
print(json.dumps([[part.get_filename(), part['content-type'].params.get('name')] for part in parts]))
`

test.runIf(hasPython || process.env.CI_REQUIRE === '1')(title, async () => {
  const messages = await Promise.all(names.map(async (name) => (await composed(name)).toString()))
  const output = execFileSync('python3', ['-c', program], { input: JSON.stringify(messages), encoding: 'utf8' })

  expect(JSON.parse(output)).toEqual(names.map((name) => [name, name]))
})

const recipients = (name: string) => [{ position: 0, kind: 'to' as const, name, address: 'ann@example.org' }]

test.each(['=?UTF-8?Q?Bank?=', 'A =?utf-8?b?QmFuaw==?= B', '"=?UTF-8?Q?x?=" <y@z>', 'Grüße, "Ä"'])(
  'a display name is shown as it was given, with no encoded word in quotes: %s',
  async (name) => {
    const sender = `"${name.replace(/["\\]/g, '\\$&')}" <hello@example.com>`
    const parts = partsOf({ email: { sender }, content: { replyTo: [sender] }, recipients: recipients(name) })
    const message = await composer.compose({ ...parts, signer: null }, null)
    const mail = await parsed(message)

    expect([mail.from, mail.to, mail.replyTo].flat().map((one) => one?.value[0]?.name)).toEqual([name, name, name])
    for (const within of quotedIn(message.toString())) expect(within).not.toContain('=?')
  },
)

test.each(['\u0085', '\u2028', '\u2029', '\ud800'])(
  'no field of a header has %j in it, wherever it was given',
  async (mark) => {
    const text = `a${mark}b`
    const message = await composer.compose(
      partsOf({
        email: { subject: text, sender: `"${text}" <hello@example.com>` },
        content: {
          replyTo: [`"${text}" <help@example.com>`],
          headers: { References: `<${text}@example.com>`, 'In-Reply-To': `<${text}@example.com>`, 'X-Given': text },
          attachments: [{ ...terms, filename: `${text}.pdf`, contentType: `application/pdf; x=${text}` }],
        },
        recipients: [{ position: 0, kind: 'to', name: text, address: 'ann@example.org' }],
        signer: null,
      }),
      null,
    )

    expect(message.toString('latin1')).not.toMatch(/[^\r\n\t -~]/)
  },
)
