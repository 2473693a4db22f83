import type { SchemaObject } from 'openapi3-ts/oas31'
import { describe, expect, test } from 'vitest'
import { exampleId, exampleSuffix } from '../../contract/ids.ts'
import { type KeptFields, keptFields } from '../../server/request-logs/kept-fields.ts'
import { reduceBody, reduceDetails, reducePath } from '../../server/request-logs/reduce.ts'
import { dereference, keyOperations, type Schema } from '../support/published-spec.ts'

function reduced(operationId: string, body: unknown): unknown {
  return JSON.parse(reduceBody(operationId, body) ?? 'null')
}

describe('of a body', () => {
  test('the parts of an email that say what it is are kept, and what it says is not', () => {
    const body = {
      from: 'Ada the First <ada@example.com>',
      to: ['grace@example.org', 'not an address'],
      subject: 'Your password',
      html: '<p>hunter2</p>',
      tags: ['welcome', 'spring'],
      headers: { 'X-Secret': 'hunter2' },
      metadata: { order: '42' },
      attachments: [{ filename: 'keys.txt', content: 'aHVudGVyMg==' }],
      trackOpens: true,
      scheduledAt: '2026-03-01T09:30:00Z',
      audienceId: exampleId('audience'),
      hunter2: 'hunter2',
    }
    expect(reduced('sendEmail', body)).toEqual({
      from: 'ada@example.com',
      to: ['grace@example.org', '[text, 14 characters]'],
      subject: '[text, 13 characters]',
      html: '[text, 14 characters]',
      tags: '[list, 2 entries]',
      headers: '[object]',
      metadata: '[object]',
      attachments: [{ filename: '[text, 8 characters]', content: '[text, 12 characters]' }],
      trackOpens: true,
      scheduledAt: '2026-03-01T09:30:00Z',
      audienceId: exampleId('audience'),
      '…': '[1 other field]',
    })
  })

  test.each([
    ['https://ada:hunter2@example.com:8443/hooks/hunter2?token=hunter2#hunter2', 'https://example.com:8443/…'],
    ['http://127.0.0.1:9/hooks', 'http://127.0.0.1:9/…'],
    ['https://[::1]/hooks', 'https://[::1]/…'],
    ['https://postern_live_hunter2/', '[text, 29 characters]'],
    ['mailto:ada@example.com', '[text, 22 characters]'],
    ['hunter2', '[text, 7 characters]'],
  ])('what is kept of the URL %s in a body is %s', (url, kept) => {
    expect(reduced('createWebhook', { url })).toEqual({ url: kept })
  })

  test('event types of the contract are kept, and other words are not', () => {
    expect(reduced('createWebhook', { events: ['email.sent', 'email.read', 'hunter2', 7, null] })).toEqual({
      events: ['email.sent', '[text, 10 characters]', '[text, 7 characters]', '[number]', null],
    })
  })

  test.each(['postern_live_', 'postern_portal_'])('an address with a key before the @ is not kept: %s', (prefix) => {
    const email = `${prefix}${'a'.repeat(32)}@example.com`
    expect(reduced('createSubscriber', { email })).toEqual({ email: `[text, ${email.length} characters]` })
  })

  test.each([
    ['text', 'hunter2'],
    ['a list', ['hunter2']],
    ['a number', 493_817],
    ['true', true],
    ['null', null],
  ])('the type at most is kept of a body that is %s', (_, body) => {
    expect(reduceBody('createWebhook', body)).not.toMatch(/hunter2|493817/)
  })

  test('nothing is kept of the body of an operation that is not known', () => {
    expect(reduceBody('signIn', { password: 'hunter2' })).toBeNull()
    expect(reduceBody('constructor', { name: 'hunter2' })).toBeNull()
  })

  test('each operation that has kept fields is an operation of keys with a body', () => {
    const withBody = keyOperations.filter(({ body }) => body !== null).map(({ id }) => id)
    expect(withBody).toEqual(expect.arrayContaining(Object.keys(keptFields)))
  })

  test('each field of a body that a key may send has what is kept of it', () => {
    const forgotten = keyOperations.flatMap(({ id, body }) =>
      body === null ? [] : missing(fieldsOf(body.schema), keptFields[id] ?? {}).map((field) => `${id} ${field}`),
    )
    expect(forgotten).toEqual([])
  })

  test('fields of a template in an email are kept, with the place of a fault in them', () => {
    const template = { id: exampleId('template'), variables: { name: 'hunter2' } }
    expect(reduced('sendEmail', { template })).toEqual({ template: { id: template.id, variables: '[object]' } })
    expect(kept('body.template.id', 'is required')).toEqual({ path: 'body.template.id', message: 'is required' })
  })

  test('20,000 characters of a body are kept at most, whatever it is', () => {
    const address = `${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.example.com`
    const email = {
      ...Object.fromEntries(['from', 'to', 'cc', 'bcc', 'replyTo'].map((name) => [name, Array(100_000).fill(address)])),
      attachments: Array(100_000).fill({ filename: 'x'.repeat(1_000), content: 'x', contentType: 'x', contentId: 'x' }),
    }
    const body = { emails: Array(100_000).fill(email) }
    expect(reduceBody('sendEmailBatch', body)?.length).toBeLessThan(20_000)
    let conditions: unknown = { type: 'property', property: 'plan' }
    for (let depth = 0; depth < 8; depth++) {
      conditions = { type: 'and', conditions: Array.from({ length: 20 }, () => conditions) }
    }
    expect(reduceBody('createSegment', { name: 'All', conditions })?.length).toBeLessThan(20_000)
    const names = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`n${index}`, 'x']))
    expect(reduceBody('createWebhook', names)).toBe('{"…":"[more fields]"}')
  })
})

/** The fields of an object, of the entries of a list, or of what else it can be. */
function fieldsOf(schema: Schema): [name: string, schema: Schema][] {
  const { properties = {}, items, oneOf = [], anyOf = [], allOf = [] } = dereference<SchemaObject>(schema)
  const others = [...oneOf, ...anyOf, ...allOf, ...(items === undefined ? [] : [items])]
  return [...Object.entries(properties), ...others.flatMap(fieldsOf)]
}

/** The paths of fields that are in a schema and not in the table. */
function missing(fields: readonly [string, Schema][], table: KeptFields): string[] {
  return fields.flatMap(([name, schema]) => {
    const keeping = table[name]
    if (keeping === undefined) return [name]
    return typeof keeping === 'string' ? [] : missing(fieldsOf(schema), keeping).map((inner) => `${name}.${inner}`)
  })
}

const id = exampleId('webhook')

test.each([
  ['/v1/webhooks/{id}/test', `/v1/webhooks/${id}/test`, `/v1/webhooks/${id}/test`],
  ['/v1/webhooks/{id}', '/v1/webhooks/hunter2', '/v1/webhooks/…'],
  ['/v1/webhooks/{id}', '/v1/webhooks/%zz', '/v1/webhooks/…'],
  ['/v1/suppressions/{address}', '/v1/suppressions/ada%40example.com', '/v1/suppressions/ada%40example.com'],
  ['/v1/suppressions/{address}', '/v1/suppressions/hunter2', '/v1/suppressions/…'],
  ['/v1/events', `/v1/events?cursor=${exampleSuffix}&limit=5`, `/v1/events?cursor=${exampleSuffix}&limit=5`],
  ['/v1/events', '/v1/events?type=email.sent&type=hunter2', '/v1/events?type=email.sent&type=…'],
  ['/v1/emails', '/v1/emails?search=hunter2&status=sent&hunter2=1', '/v1/emails?search=…&status=sent'],
  ['/v1/emails', '/v1/emails?limit=493817&cursor=hunter2', '/v1/emails?limit=…&cursor=…'],
  ['/v1/emails', '/v1/emails?recipient=ada@example.org&tag=x', '/v1/emails?recipient=ada%40example.org&tag=…'],
  ['/v1/emails', '/v1/emails?since=2026-03-01T09%3A30%3A00Z', '/v1/emails?since=2026-03-01T09%3A30%3A00Z'],
  ['/v1/emails', '/v1/emails?', '/v1/emails'],
])('what is kept of the path %s, sent as %s, is %s', (route, sent, kept) => {
  expect(reducePath(route, sent)).toBe(kept)
})

test('500 characters of a path are kept at most', () => {
  const sent = `/v1/emails?${`recipient=${'a'.repeat(60)}@example.com&`.repeat(200)}`
  expect(reducePath('/v1/emails', sent)).toHaveLength(500)
})

const kept = (path: string, message: string) =>
  JSON.parse(reduceDetails({ details: [{ path, message }] }) ?? 'null')?.[0]

test.each([
  ['body.events[1]', 'is required'],
  ['body.emails[0].attachments[3].contentType', 'must be a string, not a number'],
  ['query.limit', 'must be at most 254 characters'],
  ['body.to', 'must have at least 1 item'],
])('what is kept of the faults of an error with %s is %s', (path, message) => {
  expect(kept(path, message)).toEqual({ path, message })
})

test.each([
  ['body.hunter2', 'body.…'],
  ['body.headers.X-Secret', 'body.headers.…'],
  ['body.metadata.hunter2', 'body.metadata.…'],
  ['query.hunter2.limit', 'query.…'],
  ['body[hunter2]', 'body.…'],
  ['hunter2.url', '…'],
  [`body${'.url'.repeat(50)}`, `body${'.url'.repeat(7)}`],
])('what is kept of the path %s of a fault is %s', (path, expected) => {
  expect(kept(path, 'is required')).toEqual({ path: expected, message: 'is required' })
})

test.each([
  ['must be one of "hunter2"'],
  ['the address "hunter2" is not valid'],
  ['must be a hunter2'],
  ['is required hunter2'],
  [`must be at most ${'9'.repeat(20)} characters`],
])('the message %s of a fault is not kept', (message) => {
  expect(kept('body.to', message)).toEqual({ path: 'body.to', message: null })
})

test('the first 10 faults of an error are kept', () => {
  const details = Array.from({ length: 50 }, (_, index) => ({ path: `body.to[${index}]`, message: 'is required' }))
  expect(JSON.parse(reduceDetails({ details }) ?? '')).toHaveLength(10)
  expect(reduceDetails({ details: [] })).toBeNull()
})
