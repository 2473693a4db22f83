import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createKeyServices } from '../support/api-keys.ts'
import type { Answer, TestClient } from '../support/client.ts'
import { startTestService, type TestService } from '../support/service.ts'

/* Emails as clients send them, over HTTP, on a service that captures email and so verifies `.test` at once. */

let service: TestService
let client: TestClient

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false }, maxEmailBodyBytes: 62_914_560 })
  client = service.client
  await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
})
afterAll(() => service.stop())

const good = { from: 'Shop <hello@shop.test>', to: ['ada@example.org'], subject: 'Welcome', text: 'Hello' }

function post(json: unknown, extra = {}): Promise<Answer> {
  return client.send('POST', '/v1/emails', { json, ...extra })
}

function refusal({ status, body }: Answer): unknown[] {
  const { code, details } = Object(body).error ?? {}
  return [status, code, ...(details ?? []).map(({ path }: { path: string }) => path)]
}

const idOf = ({ body }: Answer): string => String(Object(body).id)

test('a key with sending_access sends, looks at, moves and cancels emails, and does nothing else', async () => {
  const { database, accountId } = service
  const { key } = await createKeyServices().apiKeys.create(database.db, {
    accountId,
    mode: 'live',
    permissions: ['sending_access'],
    name: 'Shop',
  })
  const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
  const sent = await post({ ...good, scheduledAt }, { key })
  expect([sent.status, Object(sent.body).status]).toEqual([202, 'scheduled'])
  const path = `/v1/emails/${idOf(sent)}`
  const later = new Date(Date.now() + 7_200_000).toISOString()
  for (const [method, to, json] of [
    ['GET', path, undefined],
    ['PATCH', path, { scheduledAt: later }],
    ['POST', `${path}/cancel`, {}],
    ['GET', '/v1/emails', undefined],
  ] as const) {
    expect((await client.send(method, to, { key, ...(json && { json }) })).status).toBe(200)
  }
  expect((await client.send('GET', '/v1/suppressions', { key })).status).toBe(401)
})

test('a key that may only read sends nothing', async () => {
  expect(refusal(await post(good, { key: service.keys.read }))).toEqual([401, 'authentication_error'])
})

test('a key sees the emails of its own mode', async () => {
  const { keys } = service
  const live = await post(good)
  const validated = await post({ ...good, from: 'a@anywhere.example' }, { key: keys.test })
  expect([live, validated].map(({ body }) => Object(body).status)).toEqual(['queued', 'validated'])
  for (const [key, mode, own, other] of [
    [keys.live, 'live', live, validated],
    [keys.test, 'test', validated, live],
  ] as const) {
    const { body } = await client.send('GET', '/v1/emails?limit=100', { key })
    const { data } = Object(body)
    expect(data[0]).toMatchObject({ id: Object(own.body).id, mode })
    expect(data.map(({ id }: { id: string }) => id)).not.toContain(Object(other.body).id)
  }
})

describe('what is wrong is told with its path', () => {
  test.each<[string, object, string[]]>([
    [
      'an address',
      { to: ['ada@example.org', 'bob@example.org', 'x', 'a, b@example.org'] },
      ['body.to[2]', 'body.to[3]'],
    ],
    ['an address alone', { to: 'x' }, ['body.to']],
    ['a sender', { from: 'x' }, ['body.from']],
    ['a sender of 501 characters', { from: `${'x'.repeat(483)} <ada@example.com>` }, ['body.from']],
    ['no recipient', { to: [] }, ['body.to']],
    ['51 recipients', { to: Array.from({ length: 51 }, (_, i) => `a${i}@example.org`) }, ['body.to']],
    ['a subject of two lines', { subject: 'Hi\r\nBcc: eve@example.org' }, ['body.subject']],
    ['an empty subject', { subject: '' }, ['body.subject']],
    ['U+0000 in the text', { text: 'a\u0000' }, ['body.text']],
    ['a header that is no text', { headers: { 'X-A': 1 } }, ['body.headers.X-A']],
    ['a path for a file name', { attachments: [{ filename: '../a', content: '' }] }, ['body.attachments[0].filename']],
    ['dots for a file name', { attachments: [{ filename: '..', content: '' }] }, ['body.attachments[0].filename']],
    ['a file that is no base64', { attachments: [{ filename: 'a', content: 'é' }] }, ['body.attachments[0].content']],
    [
      'a type of two lines',
      { attachments: [{ filename: 'a', content: '', contentType: 'a/b\r\nX: y' }] },
      ['body.attachments[0].contentType'],
    ],
    [
      'a content id in brackets',
      { attachments: [{ filename: 'a', content: '', contentId: '<a>' }] },
      ['body.attachments[0].contentId'],
    ],
    ['eleven tags', { tags: Array.from({ length: 11 }, (_, i) => `t${i}`) }, ['body.tags']],
    ['a tag of two lines', { tags: ['a\nb'] }, ['body.tags[0]']],
    ['a tag of 65 characters', { tags: ['x'.repeat(65)] }, ['body.tags[0]']],
    ['a time that is none', { scheduledAt: 'tomorrow' }, ['body.scheduledAt']],
    ['an unknown field', { campaignId: null }, ['body.campaignId']],
  ])('what is wrong is told with its path: %s', async (_, fields, paths) => {
    expect(refusal(await post({ ...good, ...fields }))).toEqual([400, 'validation_error', ...paths])
  })

  test.each<[string, object, string[]]>([
    ['51 recipients in all', { bcc: Array.from({ length: 50 }, (_, i) => `a${i}@example.org`) }, ['body.to']],
    ['neither html nor text', { text: undefined }, ['body.html']],
    ['neither subject nor template', { subject: undefined }, ['body.subject']],
    ['a header that is another’s', { headers: { 'X-A': '1', bcc: 'eve@example.org' } }, ['body.headers.bcc']],
    ['a header of two lines', { headers: { 'X-A': '1\r\nBcc: eve@example.org' } }, ['body.headers.X-A']],
    ['a time that has been', { scheduledAt: '2020-01-01T00:00:00Z' }, ['body.scheduledAt']],
    ['too many octets in an address', { to: `${'é'.repeat(33)}@example.org` }, ['body.to']],
    ['an international domain that is none', { replyTo: ['ada@é..example'] }, ['body.replyTo[0]']],
    ['too many octets in a subject', { subject: 'é'.repeat(500) }, ['body.subject']],
    ['a header that objects have', JSON.parse('{"headers":{"__proto__":"x"}}'), ['body.headers.__proto__']],
  ])('%s, which the schema takes, breaks a rule', async (_, fields, paths) => {
    expect(refusal(await post({ ...good, ...fields }))).toEqual([422, 'rule_violation', ...paths])
  })

  test('what is wrong is told with its path in each email of a batch', async () => {
    const emails = [good, { ...good, to: ['x'] }, { from: 'x' }, 'x', null]
    const answer = await client.send('POST', '/v1/emails/batch', { json: { emails } })
    expect(refusal(answer)).toEqual([
      400,
      'validation_error',
      'body.emails[1].to[0]',
      'body.emails[2].to',
      'body.emails[3]',
      'body.emails[4]',
    ])
  })
})

test.each([0, 101])('a batch of %i is refused', async (length) => {
  const json = { emails: Array.from({ length }, () => good) }
  expect(refusal(await client.send('POST', '/v1/emails/batch', { json }))).toEqual([
    400,
    'validation_error',
    'body.emails',
  ])
})

test('a batch that is permissive tells of each email by its index', async () => {
  const emails = [{ ...good, to: 'x' }, good, { ...good, from: 'a@example.com' }, 1]
  const { status, body } = await client.send('POST', '/v1/emails/batch?mode=permissive', { json: { emails } })
  expect(status).toBe(202)
  expect(body).toEqual({
    data: [{ index: 1, id: expect.stringMatching(/^email_/), status: 'queued' }],
    errors: [
      {
        index: 0,
        code: 'validation_error',
        message: expect.stringContaining('body.emails[0].to'),
        details: [{ path: 'body.emails[0].to', message: expect.any(String) }],
      },
      {
        index: 2,
        code: 'domain_not_verified',
        message: expect.stringContaining('"example.com"'),
        details: [{ path: 'body.emails[2].from', message: expect.any(String) }],
      },
      {
        index: 3,
        code: 'validation_error',
        message: expect.stringContaining('body.emails[3]'),
        details: [{ path: 'body.emails[3]', message: expect.any(String) }],
      },
    ],
  })
})

describe('sent again with its Idempotency-Key', () => {
  test('an email sent again with its Idempotency-Key is not sent twice', async () => {
    const json = { ...good, subject: 'Once' }
    const [first, second] = [await post(json, { idempotencyKey: 'once' }), await post(json, { idempotencyKey: 'once' })]
    expect([second.status, second.body, second.headers['idempotent-replayed']]).toEqual([202, first.body, 'true'])
    const { data } = await client.succeed(contract.emails.list, { query: { limit: 100 } })
    expect(data.filter(({ subject }) => subject === 'Once')).toHaveLength(1)
  })

  test('an email that was refused can be sent after all with its Idempotency-Key', async () => {
    const json = { ...good, from: 'hello@late.test' }
    expect(refusal(await post(json, { idempotencyKey: 'late' }))).toEqual([422, 'domain_not_verified', 'body.from'])
    await client.succeed(contract.domains.create, { body: { name: 'late.test' } })
    expect((await post(json, { idempotencyKey: 'late' })).status).toBe(202)
  })

  test('nothing is kept of a batch whose jobs and rows were rolled back', async () => {
    const emails = [good, { ...good, from: 'a@example.com' }]
    for (let attempt = 0; attempt < 2; attempt++) {
      const answer = await client.send('POST', '/v1/emails/batch', { json: { emails }, idempotencyKey: 'batch' })
      expect(refusal(answer)).toEqual([422, 'domain_not_verified', 'body.emails[1].from'])
    }
  })
})

test('files of 40 MiB are taken, and kept byte for byte', async () => {
  const content = Buffer.alloc(40 * 2 ** 20)
  for (let i = 0; i < content.length; i += 4_096) content.writeUInt32LE(i, i)
  const sent = await post({ ...good, attachments: [{ filename: 'large.bin', content: content.toString('base64') }] })
  expect(sent.status).toBe(202)
  const { body } = await client.send('GET', `/v1/emails/${idOf(sent)}`)
  expect(Object(body).attachments).toEqual([
    { filename: 'large.bin', contentType: 'application/octet-stream', contentId: null, size: content.length },
  ])
  const row = await service.database.db
    .selectFrom('email_attachments')
    .select('content')
    .where('email_id', '=', idOf(sent))
    .executeTakeFirstOrThrow()
  expect(row.content.equals(content)).toBe(true)
})

test('files make no other route’s bodies any larger', async () => {
  const answer = await client.send('POST', '/v1/audiences', { json: { name: 'x'.repeat(100_000) } })
  expect(refusal(answer)).toEqual([413, 'payload_too_large'])
})

test('what is suppressed over the API gets nothing', async () => {
  await client.succeed(contract.suppressions.create, { body: { address: 'Blocked@example.org' } })
  const blocked = await post({ ...good, to: 'blocked@example.org' })
  expect(Object(blocked.body).status).toBe('suppressed')
  const removed = await client.send('DELETE', '/v1/suppressions/BLOCKED%40example.org')
  expect(removed.status).toBe(204)
  expect(Object((await post({ ...good, to: 'blocked@example.org' })).body).status).toBe('queued')
})
