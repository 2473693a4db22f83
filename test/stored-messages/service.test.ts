import { randomBytes } from 'node:crypto'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { StreamedText } from '../../server/lib/streamed-text.ts'
import { newId } from '../../server/shared/ids.ts'
import { readInThread } from '../../server/stored-messages/read-in-thread.ts'
import { createCapturedMessageService, createInboundMessageService } from '../../server/stored-messages/service.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { live } from '../support/scope.ts'
import { insertCapturedMessage, insertInboundMessage } from '../support/stored-messages.ts'

let database: TestDatabase
const captured = createCapturedMessageService()
const inbound = createInboundMessageService()
const ours = newId('account', new Date())
const theirs = newId('account', new Date())

beforeAll(async () => {
  database = await createTestDatabase()
})
beforeEach(() => database.db.deleteFrom('captured_messages').execute())
afterAll(() => database.drop())

/** A message as nodemailer makes it. */
async function compose(): Promise<Buffer> {
  const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail({
    from: 'Käthe <shop@example.com>',
    to: 'ada@example.org',
    subject: 'Grüße aus Köln',
    text: 'Hallo Ada',
    html: '<p>Hallo <img src="cid:logo"></p>',
    attachments: [
      { filename: 'Preise.pdf', content: Buffer.alloc(1234), contentType: 'application/pdf' },
      { filename: 'logo.png', content: Buffer.alloc(10), contentType: 'image/png', cid: 'logo' },
    ],
  })
  return message as Buffer
}

async function read(source: string | StreamedText): Promise<Buffer> {
  if (typeof source === 'string') return Buffer.from(source, 'base64')
  let text = ''
  for await (const piece of source.pieces()) text += piece
  return Buffer.from(text, 'base64')
}

test('a message is shown with what is in it', async () => {
  const content = await compose()
  const emailId = newId('email', new Date())
  const id = await insertCapturedMessage(database, { accountId: ours, emailId, content })
  const { headers, source, ...rest } = await captured.get(database.db, live(ours), id)
  expect(rest).toMatchObject({
    id,
    emailId,
    from: '"Käthe" <shop@example.com>',
    subject: 'Grüße aus Köln',
    recipients: ['ada@example.org'],
    size: content.length,
    text: 'Hallo Ada',
    html: '<p>Hallo <img src="cid:logo"></p>',
    attachments: [
      { filename: 'logo.png', contentType: 'image/png', contentId: 'logo', size: 10 },
      { filename: 'Preise.pdf', contentType: 'application/pdf', contentId: null, size: 1234 },
    ],
  })
  expect(headers).toContainEqual({ name: 'To', value: 'ada@example.org' })
  expect((await read(source)).equals(content)).toBe(true)
})

test.each([
  ['is empty', ''],
  ['is no message', Buffer.from([0, 255, 10, 13, 0])],
  [
    'has more parts than anybody reads',
    `Content-Type: multipart/mixed; boundary=x\r\n\r\n${'--x\r\n\r\na\r\n'.repeat(2_000)}`,
  ],
])('a message that %s is shown', async (_, content) => {
  const id = await insertCapturedMessage(database, { accountId: ours, content })
  const message = await captured.get(database.db, live(ours), id)
  expect(message).toMatchObject({ id, from: null, subject: null })
  expect((await read(message.source)).equals(Buffer.from(content))).toBe(true)
  expect((await captured.list(database.db, live(ours), { limit: 20 })).data).toMatchObject([{ id, subject: null }])
})

test('a large message is shown whole', async () => {
  const text = 'Grüße aus Köln\n'.repeat(200_000)
  const attachments = [{ filename: 'a.bin', content: randomBytes(4_000_000) }]
  const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail({ text, attachments })
  const content = message as Buffer
  const id = await insertCapturedMessage(database, { accountId: ours, content })
  const shown = await captured.get(database.db, live(ours), id)
  expect(shown.text === text).toBe(true)
  expect(shown).toMatchObject({ size: content.length, attachments: [{ filename: 'a.bin', size: 4_000_000 }] })
  expect((await read(shown.source)).equals(content)).toBe(true)
})

test('a large message that is deleted while its source is read breaks off', async () => {
  const id = await insertCapturedMessage(database, { accountId: ours, content: Buffer.alloc(4_000_000, 'x') })
  const { source } = await captured.get(database.db, live(ours), id)
  if (typeof source === 'string') expect.unreachable('it is read piece by piece')
  const pieces = source.pieces()[Symbol.asyncIterator]()
  await pieces.next()
  await database.db.deleteFrom('captured_messages').where('id', '=', id).execute()
  await expect(pieces.next()).rejects.toThrow('was deleted while it was read')
})

test('a large message is read in a thread of its own, which takes over its memory', async () => {
  const content = quotedPrintable()
  expect((await readInThread(content)).text?.slice(0, 3)).toBe('ü\nü')
  expect(content).toHaveLength(0)
})

test('a large message that takes more memory than the thread has is shown without what is in it', async () => {
  expect(await readInThread(quotedPrintable(), 8)).toMatchObject({ subject: null, text: null, attachments: [] })
})

function quotedPrintable(): Buffer {
  return Buffer.from(`Content-Transfer-Encoding: quoted-printable\r\n\r\n${'=C3=BC\r\n'.repeat(400_000)}`)
}

test('a list is newest first, in pages, and of one account', async () => {
  const ids: string[] = []
  for (let number = 1; number <= 3; number++) {
    ids.unshift(await insertCapturedMessage(database, { accountId: ours, content: `Subject: ${number}\r\n\r\n` }))
  }
  await insertCapturedMessage(database, { accountId: theirs })
  await insertCapturedMessage(database, { accountId: null })

  const first = await captured.list(database.db, live(ours), { limit: 2 })
  expect(first.data.map(({ id, subject }) => [id, subject])).toEqual([
    [ids[0], '3'],
    [ids[1], '2'],
  ])
  const second = await captured.list(database.db, live(ours), { limit: 2, cursor: first.nextCursor ?? undefined })
  expect(second).toMatchObject({ data: [{ id: ids[2] }], nextCursor: null })
})

test('a list can be of one email', async () => {
  const emailId = newId('email', new Date())
  const id = await insertCapturedMessage(database, { accountId: ours, emailId })
  await insertCapturedMessage(database, { accountId: ours })
  const { data } = await captured.list(database.db, live(ours), { limit: 20, emailId })
  expect(data.map((message) => message.id)).toEqual([id])
})

test('a list reads the headers alone, however long the message is', async () => {
  const content = `Subject: Long\r\n\r\n${'Subject: no\r\n'.repeat(100_000)}`
  await insertCapturedMessage(database, { accountId: ours, content })
  const { data } = await captured.list(database.db, live(ours), { limit: 20 })
  expect(data).toMatchObject([{ subject: 'Long', size: content.length }])
})

const idsOf = async (search: string, page: { limit?: number; cursor?: string } = {}) => {
  const { data, nextCursor } = await captured.list(database.db, live(ours), { limit: 20, ...page, search })
  return { ids: data.map(({ id }) => id), nextCursor }
}

test.each([
  ['the middle of a subject', 'aus kö'],
  ['the name of the sender', 'KÄTHE'],
  ['the address of the sender', '@example.com'],
  ['a recipient', 'ada@'],
  ['two spaces and a character that shows nothing', ' aus\u200b   Köln'],
])('a search finds a message by %s', async (_, search) => {
  const id = await insertCapturedMessage(database, { accountId: ours, content: await compose() })
  await insertCapturedMessage(database, { accountId: ours, recipients: ['bob@example.org'], content: 'Subject: a' })
  await insertCapturedMessage(database, { accountId: theirs, content: await compose() })
  expect(await idsOf(search)).toEqual({ ids: [id], nextCursor: null })
})

test('a search finds a message by its id and by that of its email', async () => {
  const emailId = newId('email', new Date())
  const id = await insertCapturedMessage(database, { accountId: ours, emailId })
  await insertCapturedMessage(database, { accountId: ours })
  expect((await idsOf(id)).ids).toEqual([id])
  expect((await idsOf(emailId)).ids).toEqual([id])
})

test('a search takes what a pattern would be made of as it is', async () => {
  const id = await insertCapturedMessage(database, { accountId: ours, content: 'Subject: 100% (a_b)\r\n\r\n' })
  await insertCapturedMessage(database, { accountId: ours, content: 'Subject: 100 axb\r\n\r\n' })
  expect((await idsOf('100% (a_b)')).ids).toEqual([id])
  expect((await idsOf('%')).ids).toEqual([id])
  expect((await idsOf('.*')).ids).toEqual([])
})

test('a search looks at 100 messages for a page, and goes on behind them', async () => {
  const found = await insertCapturedMessage(database, { accountId: ours, content: 'Subject: Needle\r\n\r\n' })
  for (let number = 1; number <= 100; number++) await insertCapturedMessage(database, { accountId: ours })
  const first = await idsOf('needle')
  expect(first).toEqual({ ids: [], nextCursor: expect.any(String) })
  expect(await idsOf('needle', { cursor: first.nextCursor ?? '' })).toEqual({ ids: [found], nextCursor: null })
})

test('a search has pages that miss none and show none twice', async () => {
  const ids: string[] = []
  for (let number = 1; number <= 5; number++) {
    ids.unshift(await insertCapturedMessage(database, { accountId: ours, content: 'Subject: Needle\r\n\r\n' }))
    await insertCapturedMessage(database, { accountId: ours })
  }
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await idsOf('needle', { limit: 2, ...(cursor !== undefined && { cursor }) })
    seen.push(...page.ids)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  expect(seen).toEqual(ids)
})

test('a search without a character that can be seen is refused', async () => {
  await expect(idsOf(' \u200b')).rejects.toMatchObject({ code: 'rule_violation' })
})

test('a file is read as it is, by its place', async () => {
  const id = await insertCapturedMessage(database, { accountId: ours, content: await compose() })
  const file = await captured.getAttachment(database.db, live(ours), { id, index: 1 })
  expect(file).toMatchObject({ filename: 'Preise.pdf', contentType: 'application/pdf', contentId: null, size: 1234 })
  expect((await read(file.content)).equals(Buffer.alloc(1234))).toBe(true)
})

test('a file of a large message is read in a thread, whole', async () => {
  const bytes = randomBytes(5_000_000)
  const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail({
    text: 'Hello',
    attachments: [
      { filename: 'a.bin', content: randomBytes(300_000) },
      { filename: 'b.bin', content: bytes },
    ],
  })
  const id = await insertCapturedMessage(database, { accountId: ours, content: message as Buffer })
  const file = await captured.getAttachment(database.db, live(ours), { id, index: 1 })
  expect(file).toMatchObject({ filename: 'b.bin', size: bytes.length })
  expect((await read(file.content)).equals(bytes)).toBe(true)
})

test.each([
  ['there is none', 0, 'Subject: Hello\r\n\r\nHello'],
  ['there are fewer', 2, undefined],
  [
    'the message cannot be read',
    0,
    `Content-Type: multipart/mixed; boundary=x\r\n\r\n${'--x\r\n\r\na\r\n'.repeat(2_000)}`,
  ],
])('a file does not exist where %s', async (_, index, content) => {
  const id = await insertCapturedMessage(database, { accountId: ours, content: content ?? (await compose()) })
  const reading = captured.getAttachment(database.db, live(ours), { id, index })
  await expect(reading).rejects.toMatchObject({ code: 'not_found' })
})

test('deleting takes one message, and no other', async () => {
  const [kept, id] = [
    await insertCapturedMessage(database, { accountId: ours }),
    await insertCapturedMessage(database, { accountId: ours }),
  ]
  await captured.delete(database.db, live(ours), id)
  expect((await captured.list(database.db, live(ours), { limit: 20 })).data).toMatchObject([{ id: kept }])
  await expect(captured.delete(database.db, live(ours), id)).rejects.toMatchObject({ code: 'not_found' })
})

test('deleting takes all of one mode of one account', async () => {
  await insertCapturedMessage(database, { accountId: ours })
  await insertCapturedMessage(database, { accountId: ours })
  const test = await insertCapturedMessage(database, { accountId: ours, mode: 'test' })
  const other = await insertCapturedMessage(database, { accountId: theirs })
  await captured.deleteAll(database.db, live(ours))
  const left = await database.db.selectFrom('captured_messages').select('id').orderBy('id').execute()
  expect(left).toEqual([{ id: test }, { id: other }])
})

test('another account does not see it', async () => {
  const id = await insertCapturedMessage(database, { accountId: theirs })
  for (const reach of [
    () => captured.get(database.db, live(ours), id),
    () => captured.getAttachment(database.db, live(ours), { id, index: 0 }),
    () => captured.delete(database.db, live(ours), id),
  ]) {
    await expect(reach()).rejects.toMatchObject({ code: 'not_found' })
  }
  expect(await captured.get(database.db, live(theirs), id)).toMatchObject({ id })
})

test('an inbound message tells why it was kept', async () => {
  const id = await insertInboundMessage(database, { accountId: ours, reason: 'It says nothing.' })
  expect(await inbound.get(database.db, live(ours), id)).toMatchObject({ reason: 'It says nothing.', subject: 'Hello' })
  const { data } = await inbound.list(database.db, live(ours), { limit: 20 })
  expect(data).toMatchObject([{ id, reason: 'It says nothing.' }])
})
