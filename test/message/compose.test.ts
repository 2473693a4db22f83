import { randomBytes } from 'node:crypto'
import type { Attachment, ParsedMail } from 'mailparser'
import { describe, expect, test } from 'vitest'
import {
  bothPass,
  composer,
  headersOf,
  parsed,
  partsOf,
  publicUrl,
  signer,
  tokens,
  verified,
} from '../support/worlds/message.ts'

const html = '<p>Hello <b>Ann</b></p>'
const text = 'Hello Ann'
const logo = { filename: 'logo.png', contentType: 'image/png', contentId: 'logo', content: randomBytes(3_000) }
const terms = { filename: 'terms.pdf', contentType: 'application/pdf', contentId: null, content: randomBytes(1_000) }

/** The content types of a message's parts, nested as they are. */
function treeOf(message: string): string[] {
  return [...message.matchAll(/^Content-Type: ([^;\r]+)/gm)].map(([, type = '']) => type)
}

async function read(message: Buffer): Promise<ParsedMail> {
  expect(await verified(message)).toEqual(bothPass)
  return parsed(message)
}

const contentsOf = (attachments: readonly Attachment[]) => attachments.map(({ content }) => content)

test.each([
  ['text alone', { text }, ['text/plain']],
  ['HTML alone', { text: null, html }, ['text/html']],
  ['nothing', { text: '' }, ['text/plain']],
  ['both', { text, html }, ['multipart/alternative', 'text/plain', 'text/html']],
  ['HTML with an image', { text: null, html, attachments: [logo] }, ['multipart/related', 'text/html', 'image/png']],
  ['text with a file', { text, attachments: [terms] }, ['multipart/mixed', 'text/plain', 'application/pdf']],
  ['a file alone', { text: null, attachments: [terms] }, ['application/pdf']],
  [
    'all of them',
    { text, html, attachments: [terms, logo] },
    [
      'multipart/mixed',
      'multipart/alternative',
      'text/plain',
      'multipart/related',
      'text/html',
      'image/png',
      'application/pdf',
    ],
  ],
])('the tree of a message with %s', async (_, content, tree) => {
  const message = await composer.compose(partsOf({ content }), null)
  const mail = await read(message)

  expect(treeOf(message.toString())).toEqual(tree)
  expect(mail.text?.trimEnd() ?? '').toBe(content.text ?? '')
  expect(contentsOf(mail.attachments)).toEqual(
    ('attachments' in content ? content.attachments : [])
      .toSorted((one, other) => Number(other === logo) - Number(one === logo))
      .map((attachment) => attachment.content),
  )
})

test('the tree of a message shows an image where the HTML names it', async () => {
  const withImage = '<img src="cid:logo">'
  const mail = await read(
    await composer.compose(partsOf({ content: { html: withImage, attachments: [logo, terms] } }), null),
  )

  expect(mail.html).toBe(withImage)
  expect(mail.attachments).toEqual([
    expect.objectContaining({ cid: 'logo', contentDisposition: 'inline', related: true, filename: 'logo.png' }),
    expect.objectContaining({ contentDisposition: 'attachment', filename: 'terms.pdf' }),
  ])
})

test('a message has CRLF line ends alone, and no line that is too long, whatever the content', async () => {
  const long = `${'x'.repeat(5_000)}\n${'é'.repeat(3_000)}\r${'.\r\n'.repeat(3)}.`
  const message = await composer.compose(
    partsOf({
      email: { subject: 'y'.repeat(998) },
      content: { text: long, html: long, headers: { 'X-Long': 'z'.repeat(985) }, attachments: [terms] },
    }),
    null,
  )
  const mail = await read(message)

  expect(message.toString('latin1')).not.toMatch(/[^\r]\n|\r[^\n]/)
  for (const line of message.toString('latin1').split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
  expect(mail.text).toBe(long.replace(/\r\n|\r/g, '\n'))
  expect(mail.subject).toBe('y'.repeat(998))
  const words = headersOf(message).get('x-long')?.[0]?.split(' ') ?? []
  expect(words.map((word) => /^=\?UTF-8\?Q\?(z+)\?=$/.exec(word)?.[1]).join('')).toBe('z'.repeat(985))
})

test('a message has dots at the beginning of lines as they are: the transport stuffs them', async () => {
  const mail = await read(await composer.compose(partsOf({ content: { text: '.\n..\n.x\n' } }), null))

  expect(mail.text).toBe('.\n..\n.x\n')
})

test('a message can hold another message, with its boundaries', async () => {
  const inner = await composer.compose(partsOf({ content: { text, html, attachments: [terms] } }), null)
  const eml = { filename: 'inner.eml', contentType: 'message/rfc822', contentId: null, content: inner }
  const mail = await read(
    await composer.compose(partsOf({ content: { text: inner.toString(), html, attachments: [eml] } }), null),
  )

  expect(mail.text?.trimEnd()).toBe(inner.toString().replaceAll('\r\n', '\n').trimEnd())
  expect(contentsOf(mail.attachments)).toEqual([inner])
})

test('a message has the boundaries of no other', async () => {
  const parts = partsOf({ content: { text, html } })
  const boundaries = await Promise.all(
    [1, 2].map(async () => (await composer.compose(parts, null)).toString().match(/boundary="([^"]+)"/)?.[1]),
  )

  expect(new Set(boundaries).size).toBe(2)
  expect(boundaries).not.toContain(undefined)
})

test.each([
  ['of a type that would be a part of this message', 'multipart/mixed; boundary=x'],
  ['of a type that is none', 'x\r\nBcc: eve@example.net'],
])('a message holds a file %s as bytes', async (_, contentType) => {
  const file = { ...terms, contentType, content: Buffer.from('--x\r\n\r\nhello\r\n--x--\r\n') }
  const mail = await read(await composer.compose(partsOf({ content: { attachments: [file] } }), null))

  expect(mail.attachments).toEqual([expect.objectContaining({ filename: 'terms.pdf', content: file.content })])
  expect(mail.attachments[0]?.headers.get('content-type')).toMatchObject({ value: 'application/octet-stream' })
})

test.each(['späte Grüße 😀.txt', `${'name '.repeat(30)}.txt`, 'a"b\\c;d.txt', "it's 100%.txt"])(
  'a message keeps the name of a file: %s',
  async (filename) => {
    const mail = await read(
      await composer.compose(partsOf({ content: { attachments: [{ ...terms, filename }] } }), null),
    )

    expect(mail.attachments[0]?.filename).toBe(filename)
  },
)

describe('the header', () => {
  const recipients = [
    { position: 0, kind: 'to', name: 'Jürgen Groß', address: 'ju@example.org' },
    { position: 1, kind: 'to', name: null, address: 'b@münchen.example' },
    { position: 2, kind: 'cc', name: 'Doe, "Jane"', address: '"j d"@example.org' },
    { position: 3, kind: 'cc', name: '李', address: '用户@例え.example' },
    { position: 4, kind: 'bcc', name: 'Secret', address: 'secret@example.net' },
  ] as const

  test('the header names who it is to, in any script, and nobody who is in Bcc', async () => {
    const message = await composer.compose(partsOf({ recipients }), null)
    const mail = await read(message)

    expect([mail.to, mail.cc].flat().map((list) => list?.value)).toEqual([
      [
        { name: 'Jürgen Groß', address: 'ju@example.org' },
        { name: '', address: 'b@münchen.example' },
      ],
      [
        { name: 'Doe, "Jane"', address: '"j d"@example.org' },
        { name: '李', address: '用户@例え.example' },
      ],
    ])
    expect(message.toString()).toContain('b@xn--mnchen-3ya.example')
    expect(message.toString()).not.toMatch(/^bcc:/im)
    expect(message.toString().toLowerCase()).not.toContain('secret')
  })

  test('the header is of the email: the same sender, identifier and date in every copy, and the date it is scheduled for', async () => {
    const scheduledAt = new Date('2026-03-20T08:00:00.000Z')
    const email = { ...partsOf().email, sender: '"Post, Ern" <news@example.com>', scheduledAt }
    const parts = partsOf({ email, content: { replyTo: ['Help <help@example.com>', 'sales@example.com'] } })
    const copies = await Promise.all([null, 0].map((only) => composer.compose(parts, only)))

    for (const [index, copy] of copies.entries()) {
      const headers = headersOf(copy)
      expect(headers.get('message-id')).toEqual(['<one@example.com>'])
      expect(headers.get('date')).toEqual(['Fri, 20 Mar 2026 08:00:00 +0000'])
      expect(headers.get('from')).toEqual(['"Post, Ern" <news@example.com>'])
      expect(headers.get('reply-to')).toEqual(['Help <help@example.com>, sales@example.com'])
      expect(headers.get('mime-version')).toEqual(['1.0'])
      const position = index === 0 ? null : 0
      expect(tokens.readCopy(headers.get('x-postern-id')?.[0] ?? '')).toEqual({ emailId: email.id, position })
    }
    expect(headersOf(await composer.compose(partsOf(), null)).get('date')).toEqual(['Sun, 01 Mar 2026 09:30:00 +0000'])
  })

  test.each([
    'Grüße aus München – 😀',
    'Plain, with "quotes" and 100 %',
    `${'lange Wörter '.repeat(40)}end`,
    '=?UTF-8?Q?not_encoded?=',
    '  two  spaces   and more  ',
    `a${' '.repeat(200)}b`,
    'a\r\nBcc: eve@example.net',
  ])('the header has the subject as it was given: %j', async (subject) => {
    const message = await composer.compose(partsOf({ email: { subject } }), null)
    const mail = await read(message)

    expect(mail.subject?.replace(/\s+/g, ' ').trim()).toBe(subject.replace(/\s+/g, ' ').trim())
    expect(mail.headers.has('bcc')).toBe(false)
    expect(message.toString().split('\r\n\r\n', 1)[0]).not.toMatch(/^\s+$/m)
  })

  test('the header has the sender’s own fields, but none that are not for the sender to give', async () => {
    const given = {
      References: '<a@example.com> <b@example.com>',
      'x-json': '{"a": "b",   "c": [1]}',
      'X-Name': 'Jürgen',
      'x-split': 'a\r\nBcc: eve@example.net',
      key: 'one',
      value: 'two',
      'X:Y': 'no name',
    }
    const refused = {
      From: 'eve@example.net',
      to: 'eve@example.net',
      BCC: 'eve@example.net',
      'Message-Id': '<eve@example.net>',
      Date: 'now',
      'content-type': 'text/html',
      'Content-Transfer-Encoding': '8bit',
      'DKIM-Signature': 'v=1',
      'X-Postern-Id': 'eve',
      'Resent-To': 'eve@example.net',
    }
    const message = await composer.compose(
      partsOf({ content: { headers: { ...given, ...refused } }, signer: null }),
      null,
    )
    const headers = headersOf(message)

    expect(headers.get('references')).toEqual(['<a@example.com> <b@example.com>'])
    expect(headers.get('x-json')).toEqual(['{"a": "b", "c": [1]}'])
    expect(headers.get('x-split')).toEqual(['a Bcc: eve@example.net'])
    expect(headers.get('key')).toEqual(['one'])
    expect(headers.get('value')).toEqual(['two'])
    expect(headers.get('x-name')).toEqual(['=?UTF-8?Q?J=C3=BCrgen?='])
    expect([...headers.keys()].sort()).toEqual(
      [
        ...['from', 'to', 'message-id', 'date', 'subject', 'x-postern-id'],
        ...['mime-version', 'content-type', 'content-transfer-encoding'],
        ...['references', 'x-json', 'x-name', 'x-split', 'key', 'value'],
      ].sort(),
    )
    expect([...headers.values()].every((values) => values.length === 1)).toBe(true)
    expect(message.toString()).not.toContain('eve@example.net>')
  })
})

const audienceId = 'aud_01jqz4x7m8e5v9t2k6r3w0y1ab'
const recipients = [
  { position: 0, kind: 'to' as const, name: 'Ann', address: 'ann@example.org' },
  { position: 1, kind: 'to' as const, name: null, address: 'bob@example.org' },
  { position: 2, kind: 'cc' as const, name: null, address: 'cy@example.org' },
  { position: 3, kind: 'bcc' as const, name: null, address: 'dee@example.org' },
]

test.each([
  [0, 'Ann <ann@example.org>'],
  [1, 'bob@example.org'],
  [2, 'cy@example.org'],
  [3, 'dee@example.org'],
])('an email to an audience shows recipient %i no address but their own', async (position, to) => {
  const message = await composer.compose(partsOf({ email: { audienceId }, recipients }), position)
  const headers = headersOf(message)
  expect([headers.get('to'), headers.get('cc')]).toEqual([[to], undefined])
  for (const { address } of recipients) {
    if (!to.includes(address)) expect(message.toString()).not.toContain(address)
  }
  expect(await verified(message)).toEqual(bothPass)
})

test('an email to an audience offers each recipient to unsubscribe with one click, and signs that', async () => {
  const parts = partsOf({
    email: { audienceId },
    content: { headers: { 'List-Unsubscribe': '<https://other.example>', 'list-unsubscribe-post': 'x' } },
  })
  const message = await composer.compose(parts, 0)
  const headers = headersOf(message)
  const [, token = ''] =
    headers.get('list-unsubscribe')?.[0]?.match(/^<https:\/\/post\.example\.com\/u\/([\w-]+)>$/) ?? []

  expect(await verified(message)).toEqual(bothPass)
  const { id: emailId, accountId } = parts.email
  expect(tokens.readUnsubscribe(token)).toEqual({ emailId, position: 0, accountId, address: 'ann@example.org' })
  expect(headers.get('list-unsubscribe')).toHaveLength(1)
  expect(headers.get('list-unsubscribe-post')).toEqual(['List-Unsubscribe=One-Click'])
  for (const signature of headers.get('dkim-signature') ?? []) {
    expect(signature.replace(/\s/g, '')).toContain(':list-unsubscribe:list-unsubscribe-post:')
  }
})

test('an email to an audience offers each recipient to leave the topic alone, where the email has one', async () => {
  const topicId = 'top_01jqz4x7m8e5v9t2k6r3w0y1ab'
  const parts = partsOf({ email: { audienceId, topicId } })
  const headers = headersOf(await composer.compose(parts, 0))
  const [, token = ''] = headers.get('list-unsubscribe')?.[0]?.match(/\/u\/([\w-]+)>$/) ?? []

  expect(tokens.readUnsubscribe(token)).toMatchObject({ address: 'ann@example.org', topicId })
})

test.each([
  ['belongs to an audience, in the copy for all', { audienceId }, null],
  ['belongs to none', { audienceId: null }, 0],
])('an email to an audience is not one that %s', async (_, email, only) => {
  const given = { 'List-Unsubscribe': '<https://other.example>' }
  const message = await composer.compose(partsOf({ email, content: { headers: given } }), only)

  expect(headersOf(message).get('list-unsubscribe')).toEqual(['<https://other.example>'])
  expect(message.toString()).not.toContain(publicUrl)
})

test('what has no signer is not signed', async () => {
  const message = await composer.compose(partsOf({ signer: null }), null)

  expect(headersOf(message).has('dkim-signature')).toBe(false)
  expect(headersOf(await composer.compose(partsOf({ signer }), null)).get('dkim-signature')).toHaveLength(2)
})
