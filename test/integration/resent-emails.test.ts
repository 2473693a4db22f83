import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { EmailDetails } from '../../contract/email-resource.ts'
import { contract } from '../../contract/index.ts'
import type { Answer, TestClient } from '../support/client.ts'
import { tomorrow } from '../support/fixtures.ts'
import { describeSessions, untilSomebodyWaits } from '../support/locks.ts'
import { patienceMs } from '../support/patience.ts'
import { startTestService, type TestService } from '../support/service.ts'

/* Files of emails, and emails that are sent again, over HTTP, on a service that captures email. */

let service: TestService
let client: TestClient

beforeAll(async () => {
  service = await startTestService({ maxEmailBodyBytes: 62_914_560 })
  client = service.client
  await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
})
afterAll(() => service.stop())

/** Above the 3 MiB of a slice, and no multiple of 3. */
const large = randomBytes(2 * 3 * 2 ** 20 + 7)
const files = [
  { filename: 'logo.png', contentType: 'image/png', contentId: 'logo', content: randomBytes(40).toString('base64') },
  { filename: 'empty.txt', content: '' },
  { filename: 'Größe “1”.bin', content: large.toString('base64') },
]
const full = {
  from: 'Shop <hello@shop.test>',
  to: ['Ada Lovelace <ada@example.org>', 'bob@example.org'],
  cc: ['carol@example.org'],
  bcc: ['dan@example.org'],
  replyTo: ['help@shop.test'],
  subject: 'Your order',
  html: '<p>Hello <img src="cid:logo"></p>',
  text: 'Hello',
  headers: { 'X-Order-Number': '4711' },
  attachments: files,
  tags: ['order'],
  metadata: { order: '4711' },
  trackClicks: true,
}

async function send(body: object): Promise<string> {
  const answer = await client.send('POST', '/v1/emails', { json: body })
  expect(answer.status, answer.text).toBe(202)
  return String(Object(answer.body).id)
}

const get = (id: string) => client.succeed(contract.emails.get, { params: { id } })

function untilEnded(id: string): Promise<EmailDetails> {
  return vi.waitFor(
    async () => {
      const email = await get(id)
      if (email.completedAt === null) throw new Error(`the email is ${email.status}`)
      return email
    },
    { timeout: patienceMs },
  )
}

async function sendAndEnd(body: object): Promise<string> {
  const id = await send(body)
  await untilEnded(id)
  return id
}

const resend = (id: string, options = {}) => client.send('POST', `/v1/emails/${id}/resend`, { json: {}, ...options })
const codeOf = ({ status, body }: Answer) => [status, Object(body).error?.code]
const good = { from: 'hello@shop.test', to: 'ada@example.org', subject: 'Hello', text: 'Hello' }

describe('a file', () => {
  let id: string
  beforeAll(async () => {
    id = await send(full)
  })

  test.each(files.map((file, index) => [file.filename, index, file] as const))(
    '%s comes as it was sent',
    async (_, index, file) => {
      const { content, size, ...rest } = await client.succeed(contract.emails.getAttachment, { params: { id, index } })
      expect(content === file.content, 'the content differs').toBe(true)
      expect(size).toBe(Buffer.from(file.content, 'base64').length)
      expect(rest).toMatchObject({ filename: file.filename, contentId: file.contentId ?? null })
    },
  )

  test.each(['3', '99', '100', '-1', '0x1', '1e0', '9'.repeat(400), "'; --"])(
    'a file that is not there is answered with 404: %s',
    async (index) => {
      expect(codeOf(await client.send('GET', `/v1/emails/${id}/attachments/${encodeURIComponent(index)}`))).toEqual([
        404,
        'not_found',
      ])
    },
  )

  test('a file of another account is not there', async () => {
    const answer = await client.send('GET', `/v1/emails/${id}/attachments/0`, { key: service.keys.other })
    expect(codeOf(answer)).toEqual([404, 'not_found'])
  })
})

test('an email that is sent again is a new one with the same content, for the same people', async () => {
  const old = await untilEnded(await send(full))
  const { id } = await client.succeed(contract.emails.resend, { params: { id: old.id }, body: {} })
  const again = await untilEnded(id)
  const { id: _, messageId, createdAt, updatedAt, completedAt, timeline, recipients, ...same } = old
  expect(again).toMatchObject(same)
  expect([again.id, again.messageId]).not.toEqual(expect.arrayContaining([old.id, messageId]))
  expect(again.recipients.map(({ address, kind, name }) => [address, kind, name])).toEqual(
    recipients.map(({ address, kind, name }) => [address, kind, name]),
  )
  expect(await get(old.id)).toEqual(old)
  const { content } = await client.succeed(contract.emails.getAttachment, { params: { id, index: 2 } })
  expect(content === files[2]?.content, 'the content differs').toBe(true)
  const { data } = await client.succeed(contract.capturedMessages.list, { query: { emailId: id } })
  expect(data.map(({ size }) => size > large.length)).toEqual([true, true, true, true])
})

test('an email that is sent again is found by its subject, tag and metadata', async () => {
  const id = await sendAndEnd({ ...good, subject: 'Found again', tags: ['again'], metadata: { again: 'yes' } })
  const { id: again } = await client.succeed(contract.emails.resend, { params: { id }, body: {} })
  for (const query of ['search=found', 'tag=again', 'metadata[again]=yes']) {
    const { body } = await client.send('GET', `/v1/emails?${query}`)
    expect(
      Object(body).data.map((email: { id: string }) => email.id),
      query,
    ).toEqual([again, id])
  }
})

test('an email that is sent again is sent once with one idempotency key', async () => {
  const id = await sendAndEnd(good)
  const answers = await Promise.all(Array.from({ length: 4 }, () => resend(id, { idempotencyKey: `again-${id}` })))
  const made = answers.filter(({ status }) => status === 202).map(({ body }) => Object(body).id)
  expect(new Set(made).size).toBe(1)
  expect(await resend(id, { idempotencyKey: `again-${id}` })).toMatchObject({ status: 202, body: { id: made[0] } })
})

test('an email that is sent again goes to nobody who is suppressed by now', async () => {
  const id = await sendAndEnd({ ...good, to: ['erin@example.org', 'frank@example.org'] })
  await client.succeed(contract.suppressions.create, { body: { address: 'erin@example.org' } })
  const { id: again } = await client.succeed(contract.emails.resend, { params: { id }, body: {} })
  const { recipients } = await untilEnded(again)
  expect(recipients.map(({ status }) => status)).toEqual(['suppressed', 'delivered'])
})

test('an email that is sent again is refused before it has ended, and says what to do', async () => {
  const id = await send({ ...good, scheduledAt: tomorrow() })
  const answer = await resend(id)
  expect(codeOf(answer)).toEqual([422, 'email_not_ended'])
  expect(answer.text).toContain('Cancel it first')
  await client.succeed(contract.emails.cancel, { params: { id }, body: {} })
  expect((await resend(id)).status).toBe(202)
})

test('an email that is sent again is refused once its domain is gone', async () => {
  const { id: domainId } = await client.succeed(contract.domains.create, { body: { name: 'gone.test' } })
  const id = await sendAndEnd({ ...good, from: 'hello@gone.test' })
  await client.succeed(contract.domains.delete, { params: { id: domainId } })
  expect(codeOf(await resend(id))).toEqual([422, 'domain_not_verified'])
})

test('an email that is sent again is refused once its audience is gone', async () => {
  const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
  const id = await sendAndEnd({ ...good, audienceId })
  await client.succeed(contract.audiences.delete, { params: { id: audienceId } })
  expect(codeOf(await resend(id))).toEqual([422, 'audience_not_found'])
})

test('an email of another account is not there to be sent again', async () => {
  const id = await sendAndEnd(good)
  expect(codeOf(await resend(id, { key: service.keys.other }))).toEqual([404, 'not_found'])
})

test('an email that is sent again keeps one connection busy, however many requests an account sends', async () => {
  const { db } = service.database
  const id = await sendAndEnd(good)
  const held = Promise.withResolvers<void>()
  const holding = db.transaction().execute(async (trx) => {
    await trx.selectFrom('emails').select('id').where('id', '=', id).forUpdate().execute()
    await held.promise
  })
  const many = Array.from({ length: 12 }, (_, index) =>
    resend(id, index % 2 === 0 ? {} : { idempotencyKey: `many-${index}` }),
  )
  await untilSomebodyWaits(db, 'for key share')
  // By then the others have come too.
  for (let count = 0; count < 10; count += 1) expect((await client.send('GET', '/v1/webhooks')).status).toBe(200)
  const waiting = (await describeSessions(db)).filter((what) => what.includes('waits for Lock'))
  held.resolve()
  await holding
  expect(waiting).toHaveLength(1)
  expect(new Set((await Promise.all(many)).map(({ status }) => status))).toEqual(new Set([202]))
})
