import { describe, expect, test } from 'vitest'
import type { SendEmail } from '../../contract/emails.ts'
import { type ReadEmail, readEmail } from '../../server/emails/validate-email.ts'

const now = new Date('2026-03-01T09:30:00Z')
const good: SendEmail = { from: 'hello@example.com', to: ['ada@example.org'], subject: 'Welcome', text: 'Hello' }

async function read(fields: Partial<SendEmail>): Promise<ReadEmail> {
  const { email, faults } = await readEmail({ ...good, ...fields }, { now, path: 'body' })
  return email ?? expect.fail(JSON.stringify(faults))
}

async function faultsOf(fields: Partial<SendEmail>): Promise<[path: string, message: string][]> {
  const { faults } = await readEmail({ ...good, ...fields }, { now, path: 'body' })
  return (faults ?? []).map(({ path, message }) => [path, message])
}

test('what is not given has its default', async () => {
  expect(await read({})).toMatchObject({
    from: { name: null, address: 'hello@example.com', domain: 'example.com' },
    replyTo: [],
    recipients: [{ kind: 'to', address: 'ada@example.org', key: 'ada@example.org', domain: 'example.org' }],
    html: null,
    text: 'Hello',
    headers: {},
    attachments: [],
    tags: [],
    audienceId: null,
    trackOpens: false,
    trackClicks: false,
    scheduledAt: null,
  })
})

test('a recipient named twice is there once, where it is named first', async () => {
  const { recipients } = await read({
    to: ['Ada <ada@example.org>', 'bob@example.org'],
    cc: ['ADA@example.org', 'cy@example.org'],
    bcc: 'Bob@Example.org',
  })
  expect(recipients.map(({ kind, name, address }) => [kind, name, address])).toEqual([
    ['to', 'Ada', 'ada@example.org'],
    ['to', null, 'bob@example.org'],
    ['cc', null, 'cy@example.org'],
  ])
})

test('one recipient alone needs no list', async () => {
  expect(await read({ to: 'ada@example.org', cc: 'bob@example.org', replyTo: 'Us <us@example.com>' })).toMatchObject({
    recipients: [{ kind: 'to' }, { kind: 'cc' }],
    replyTo: ['Us <us@example.com>'],
  })
})

test('50 recipients are taken in all, and none more', async () => {
  const people = (count: number, name: string) => Array.from({ length: count }, (_, i) => `${name}${i}@example.org`)
  expect((await read({ to: people(20, 'a'), cc: people(20, 'b'), bcc: people(10, 'c') })).recipients).toHaveLength(50)
  expect(await faultsOf({ to: people(20, 'a'), cc: people(20, 'b'), bcc: people(11, 'c') })).toEqual([
    ['body.to', 'must be at most 50 recipients, with those in cc and bcc'],
  ])
  expect((await read({ to: people(50, 'a'), cc: people(50, 'A') })).recipients).toHaveLength(50)
})

test('each fault of a recipient has the path of its address', async () => {
  expect(
    await faultsOf({
      from: 'x',
      to: ['ada@example.org', 'x'],
      cc: 'x',
      bcc: ['x'],
      replyTo: ['us@example.com', 'x'],
    }),
  ).toEqual(
    ['body.from', 'body.to[1]', 'body.cc', 'body.bcc[0]', 'body.replyTo[1]'].map((path) => [
      path,
      'must be an address such as ada@example.com',
    ]),
  )
})

test('a subject is measured in octets', async () => {
  expect((await read({ subject: 'é'.repeat(499) })).subject).toHaveLength(499)
  expect(await faultsOf({ subject: 'é'.repeat(500) })).toEqual([
    ['body.subject', 'must be at most 998 octets in UTF-8'],
  ])
})

test('the content is needed as HTML or as text', async () => {
  expect(await faultsOf({ text: null })).toEqual([['body.html', 'is needed, or text']])
  expect((await read({ text: null, html: '' })).html).toBe('')
})

test('the HTML and the text are at most 10 MiB each', async () => {
  const most = 'x'.repeat(10 * 2 ** 20)
  expect((await read({ html: most, text: most })).html).toHaveLength(most.length)
  expect((await faultsOf({ html: `${most}x`, text: `${most.slice(1)}é` })).map(([path]) => path)).toEqual([
    'body.html',
    'body.text',
  ])
})

describe('attachments', () => {
  test('attachments are decoded, and have the type their name says', async () => {
    expect(
      (
        await read({
          attachments: [
            { filename: 'terms.PDF', content: 'aGFsbG8=' },
            { filename: 'x', content: '', contentType: 'text/plain; charset=utf-8' },
            { filename: 'archive.unknown', content: 'aGE=', contentId: 'logo' },
            { filename: '.constructor', content: '' },
          ],
        })
      ).attachments,
    ).toEqual([
      { filename: 'terms.PDF', contentType: 'application/pdf', contentId: null, content: Buffer.from('hallo') },
      { filename: 'x', contentType: 'text/plain; charset=utf-8', contentId: null, content: Buffer.alloc(0) },
      {
        filename: 'archive.unknown',
        contentType: 'application/octet-stream',
        contentId: 'logo',
        content: Buffer.from('ha'),
      },
      { filename: '.constructor', contentType: 'application/octet-stream', contentId: null, content: Buffer.alloc(0) },
    ])
  })

  test.each([
    ['ada.vcf', 'text/vcard'],
    ['notes.md', 'text/markdown'],
    ['letter.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['terms.pdf\r\nX-A: b', 'application/octet-stream'],
    ['pdf', 'application/pdf'],
    ['__proto__', 'application/octet-stream'],
  ])('a file named %j has the type %s', async (filename, contentType) => {
    const { attachments } = await read({ attachments: [{ filename, content: '' }] })
    expect(attachments).toMatchObject([{ contentType }])
  })

  test('attachments that are none are refused where they stand', async () => {
    expect(
      await faultsOf({
        attachments: [
          { filename: 'a', content: 'aGFsbG8=' },
          { filename: 'b', content: 'hallo!' },
          { filename: 'c', content: '', contentType: 'Multipart/mixed' },
          { filename: 'd', content: '', contentId: 'logo' },
          { filename: 'e', content: '', contentId: 'logo' },
        ],
      }),
    ).toEqual([
      ['body.attachments[1].content', expect.stringContaining('must be base64')],
      ['body.attachments[2].contentType', 'must not be multipart'],
      ['body.attachments[4].contentId', 'is there already'],
    ])
  })

  test('attachments are at most 40 MiB in all', async () => {
    const half = Buffer.alloc(20 * 2 ** 20).toString('base64')
    const two = [
      { filename: 'a', content: half },
      { filename: 'b', content: half },
    ]
    expect((await read({ attachments: two })).attachments).toHaveLength(2)
    expect(await faultsOf({ attachments: [...two, { filename: 'c', content: 'aGE=' }] })).toEqual([
      ['body.attachments', 'must be at most 41943040 bytes in all'],
    ])
  })
})

test.each(['2026-03-01T09:30:00.001Z', '2026-03-31T09:30:00Z', '2026-03-31T11:30:00+02:00'])(
  'the time %s to send an email is taken',
  async (at) => {
    expect((await read({ scheduledAt: at })).scheduledAt).toEqual(new Date(at))
  },
)

test.each([
  ['2026-03-01T09:30:00Z', 'must be in the future'],
  ['2025-03-02T09:30:00Z', 'must be in the future'],
  ['2026-03-31T09:30:00.001Z', 'must be at most 30 days ahead'],
])('the time %s to send an email is refused', async (at, message) => {
  expect(await faultsOf({ scheduledAt: at })).toEqual([['body.scheduledAt', message]])
})

test('a tag given twice is there once', async () => {
  expect((await read({ tags: ['b', 'a', 'b'] })).tags).toEqual(['b', 'a'])
})

test('all that is wrong is told at once, below the path given', async () => {
  const { faults } = await readEmail(
    { ...good, to: 'x', text: null, headers: { Bcc: 'x' }, scheduledAt: '2020-01-01T00:00:00Z' },
    { now, path: 'body.emails[3]' },
  )
  expect(faults?.map(({ path }) => path)).toEqual([
    'body.emails[3].to',
    'body.emails[3].html',
    'body.emails[3].headers.Bcc',
    'body.emails[3].scheduledAt',
  ])
})
