import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorBody } from '../../contract/errors.ts'
import { exampleId } from '../../contract/ids.ts'
import type { Answer, SendOptions } from '../support/client.ts'
import { sendRaw } from '../support/raw-http.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false }, maxBodyBytes: 1_000 })
})
afterAll(() => service?.stop())

const json = { 'content-type': 'application/json' }
const webhook = { url: 'https://example.com/hooks', events: ['contact.created'] }

/** The error of an answer, which must be one of the contract's shape. */
function errorOf({ body, headers }: Pick<Answer, 'body' | 'headers'>) {
  const { error } = errorBody.parse(body)
  expect(error.requestId).toBe(headers['x-request-id'])
  return error
}

async function refused(method: string, path: string, options?: SendOptions) {
  const answer = await service.client.send(method, path, options)
  return { status: answer.status, headers: answer.headers, ...errorOf(answer) }
}

describe('a body', () => {
  test.each([
    ['that breaks off', '{"url":'],
    ['that is no JSON', 'url=https://example.com'],
    ['that is no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('%s is malformed JSON', async (_, raw) => {
    const answer = await refused('POST', '/v1/webhooks', { raw, headers: json })

    expect(answer).toMatchObject({ status: 400, code: 'malformed_json' })
    expect(answer.message).toMatch(/^The body is not JSON: /)
  })

  test.each(['"x"', '1', 'true', '[]', 'null'])(
    'a body that is %s is JSON, and not what the route takes',
    async (raw) => {
      const answer = await refused('POST', '/v1/webhooks', { raw, headers: json })

      expect(answer).toMatchObject({ status: 400, code: 'validation_error', details: [{ path: 'body' }] })
    },
  )

  test.each([
    ['of another type', { 'content-type': 'text/plain' }],
    ['of a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['in another charset', { 'content-type': 'application/json; charset=utf-16' }],
    ['of a type that cannot be read', { 'content-type': 'json' }],
    ['of no type', {}],
    ['that is compressed', { ...json, 'content-encoding': 'gzip' }],
  ])('%s is refused', async (_, headers) => {
    const answer = await refused('POST', '/v1/webhooks', { raw: JSON.stringify(webhook), headers })

    expect(answer).toMatchObject({ status: 415, code: 'unsupported_media_type' })
  })

  test.each([
    ['application/json; charset=utf-8'],
    ['Application/JSON;charset="UTF-8"'],
    ['application/json; odata=verbose'],
  ])('a body of the type %s is read', async (type) => {
    const answer = await service.client.send('POST', '/v1/webhooks', {
      raw: Buffer.from(`\ufeff${JSON.stringify(webhook)}`),
      headers: { 'content-type': type },
    })

    expect(answer).toMatchObject({ status: 201, body: { url: webhook.url } })
  })

  test('a body of exactly the limit is read, and one byte more is refused with the limit', async () => {
    const text = JSON.stringify({ ...webhook, description: 'x' })

    const read = await service.client.send('POST', '/v1/webhooks', { raw: text.padEnd(1_000), headers: json })
    const answer = await refused('POST', '/v1/webhooks', { raw: text.padEnd(1_001), headers: json })

    expect(read.status).toBe(201)
    expect(answer).toMatchObject({ status: 413, code: 'payload_too_large' })
    expect(answer.message).toContain('1000 bytes')
  })

  test('a body that is announced to be too long is refused before it comes', async () => {
    const answer = await raw(`POST /v1/webhooks HTTP/1.1\r\n${head({ ...json, 'Content-Length': '1001' })}\r\n`)

    expect(answer).toMatchObject({ status: 413, code: 'payload_too_large' })
  })

  test('a body that does not tell its length is refused when it gets too long', async () => {
    const chunk = `3e8\r\n${' '.repeat(1_000)}\r\n`

    const answer = await raw(
      `POST /v1/webhooks HTTP/1.1\r\n${head({ 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' })}\r\n${chunk}${chunk}0\r\n\r\n`,
    )

    expect(answer).toMatchObject({ status: 413, code: 'payload_too_large' })
  })

  test('a body that is not there is a fault where one is needed, and none where it is not', async () => {
    const needed = await refused('POST', '/v1/webhooks')
    const chunked = await raw(
      `POST /v1/webhooks HTTP/1.1\r\n${head({ ...json, 'Transfer-Encoding': 'chunked' })}\r\n0\r\n\r\n`,
    )
    const { body } = await service.client.send('POST', '/v1/webhooks', { json: webhook })
    const rotated = await service.client.send('POST', `/v1/webhooks/${Object(body).id}/rotate-secret`)

    expect(needed).toMatchObject({ code: 'validation_error', details: [{ path: 'body', message: 'is required' }] })
    expect(chunked).toMatchObject({ code: 'validation_error', details: [{ path: 'body', message: 'is required' }] })
    expect(rotated.status).toBe(200)
  })

  test('a body is not looked at where it means nothing', async () => {
    const { status } = await service.client.send('GET', '/v1/webhooks', { raw: '{', headers: { 'content-type': 'x' } })

    expect(status).toBe(200)
  })
})

test('a field that is unknown is named, each one by itself', async () => {
  const answer = await refused('POST', '/v1/webhooks', { json: { ...webhook, one: 1, two: 2 } })

  expect(answer.code).toBe('validation_error')
  expect(answer.details).toEqual([
    { path: 'body.one', message: 'is not known here' },
    { path: 'body.two', message: 'is not known here' },
  ])
  expect(answer.message).toContain('body.one: is not known here; body.two: is not known here')
})

test('a field that is wrong is named by its place', async () => {
  const answer = await refused('POST', '/v1/webhooks', { json: { events: ['contact.created', 'no.such'] } })

  expect(answer.details?.map(({ path }) => path)).toEqual(['body.url', 'body.events[1]'])
  expect(answer.details?.[0]?.message).toBe('is required')
  expect(answer.message).toMatch(/^The request is not valid: body\.url: is required; body\.events\[1\]: /)
})

test('a field called like the prototype of all objects is unknown like any other', async () => {
  const answer = await refused('POST', '/v1/webhooks', {
    raw: '{"url":"https://example.com","events":["contact.created"],"__proto__":{"description":"x"}}',
    headers: json,
  })

  expect(answer.details).toEqual([{ path: 'body.__proto__', message: 'is not known here' }])
})

test.each([
  ['a URL', '/v1/webhooks', { ...webhook, url: 'https://example.com/\u0000' }, 'body.url'],
  ['a name', '/v1/audiences', { name: 'a\u0000b' }, 'body.name'],
])('a field that holds U+0000, which the database cannot store, is refused: %s', async (_, route, json, path) => {
  const answer = await refused('POST', route, { json })

  expect(answer).toMatchObject({ status: 400, code: 'validation_error' })
  expect(answer.details?.map((detail) => detail.path)).toEqual([path])
})

test('a field with a long name does not come back whole, and many do not come back each', async () => {
  const many = Object.fromEntries(Array.from({ length: 90 }, (_, number) => [`n${number}`, 1]))

  const long = await refused('POST', '/v1/webhooks', { json: { ...webhook, ['x'.repeat(800)]: 1 } })
  const answer = await refused('POST', '/v1/webhooks', { json: many })

  expect(long.details?.[0]?.path).toHaveLength(101)
  expect(answer.details).toHaveLength(50)
  expect(answer.message).toMatch(/; and \d\d more\.$/)
})

test('a query key that is unknown is refused, where the route takes others and where it takes none', async () => {
  const list = await refused('GET', '/v1/webhooks?page=2')
  const none = await refused('GET', '/v1/event-types?page=2')

  for (const answer of [list, none]) {
    expect(answer).toMatchObject({ status: 400, code: 'validation_error' })
    expect(answer.details).toEqual([{ path: 'query.page', message: 'is not known here' }])
  }
})

test('a query key given twice is refused', async () => {
  const answer = await refused('GET', '/v1/webhooks?limit=1&limit=2')

  expect(answer.details).toEqual([{ path: 'query.limit', message: 'must be given only once' }])
})

test.each(['__proto__=1', 'limit[]=1', 'limit[a]=1', '%zz', 'limit=%ff', '=', 'a'.repeat(5_000)])(
  'a query key such as %s is refused',
  async (query) => {
    expect(await refused('GET', `/v1/webhooks?${query}`)).toMatchObject({ status: 400, code: 'validation_error' })
  },
)

test('a query key does not count when it is empty', async () => {
  expect((await service.client.send('GET', '/v1/webhooks?')).status).toBe(200)
})

describe('a path', () => {
  test.each([
    '/v1/nothing',
    '/v2/webhooks',
    '/v1/webhooks/',
    '/V1/webhooks',
    '/v1/Webhooks',
    '//v1/webhooks',
    '/v1//webhooks',
    '/docs/../package.json',
    '/docs/swagger-ui.js.map',
    '/healthz/',
  ])('%s is not there', async (path) => {
    expect(await refused('GET', path)).toMatchObject({ status: 404, code: 'not_found' })
  })

  test('a path with an identifier of another form says how they look', async () => {
    const answer = await refused('GET', '/v1/webhooks/42')

    expect(answer).toMatchObject({ status: 404, code: 'not_found' })
    expect(answer.message).toContain(exampleId('webhook'))
  })

  test('a path that is wrong together with the body is a fault of the request', async () => {
    const answer = await refused('PATCH', '/v1/webhooks/42', { json: { nothing: 1 } })

    expect(answer).toMatchObject({ status: 400, code: 'validation_error' })
    expect(answer.details?.map(({ path }) => path)).toEqual(['path.id', 'body.nothing'])
  })

  test.each(['/v1/webhooks/%zz', '/v1/webhooks/%', '/v1/%ff', '/%c0%af'])('%s cannot be decoded', async (path) => {
    const answer = await raw(`GET ${path} HTTP/1.1\r\n${head()}\r\n`)

    expect(answer).toMatchObject({ status: 400, code: 'malformed_request' })
    expect(answer.message).toContain('%')
  })

  test('a path with another method says which it has', async () => {
    const list = await refused('PUT', '/v1/webhooks', { json: webhook })
    const options = await refused('OPTIONS', `/v1/webhooks/${exampleId('webhook')}`)
    const health = await refused('POST', '/healthz')

    expect(list).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(list.headers.allow).toBe('POST, GET, HEAD')
    expect(options).toMatchObject({ status: 405 })
    expect(options.headers.allow).toBe('GET, HEAD, PATCH, DELETE')
    expect(health.headers.allow).toBe('GET, HEAD')
  })

  test('a path is answered to HEAD as to GET, without the body', async () => {
    const got = await service.client.send('GET', '/v1/webhooks')
    const answer = await sendRaw(service.url, { bytes: `HEAD /v1/webhooks HTTP/1.1\r\n${head()}\r\n` })

    expect(answer.status).toBe(200)
    expect(answer.body).toBe('')
    expect(answer.headers['content-length']).toBe(got.headers['content-length'])
  })
})

test('every answer has a request id of its own, whatever the client calls it, and is not to be kept or sniffed', async () => {
  const headers = { 'x-request-id': 'mine' }
  const answers = [
    await service.client.send('GET', '/v1/webhooks', { headers }),
    await service.client.send('GET', '/v1/webhooks', { headers }),
    await service.client.send('GET', '/nothing', { headers }),
  ]

  const ids = answers.map((answer) => answer.headers['x-request-id'])
  expect(new Set(ids).size).toBe(3)
  for (const id of ids) expect(id).toMatch(/^req_[0-7][0-9a-z]{25}$/)
  for (const answer of answers) {
    expect(answer.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
    expect(answer.headers).not.toHaveProperty('x-powered-by')
    expect(answer.headers).not.toHaveProperty('etag')
  }
})

test('every answer to a key that is refused names the scheme', async () => {
  const answer = await refused('GET', '/v1/webhooks', { key: null })

  expect(answer).toMatchObject({ status: 401, code: 'authentication_error' })
  expect(answer.headers['www-authenticate']).toBe('Bearer')
})

test('every answer refuses the key before it reads the body', async () => {
  const answer = await refused('POST', '/v1/webhooks', { key: null, raw: '{'.repeat(5_000), headers: json })

  expect(answer.status).toBe(401)
})

test.each([
  ['without a Host', ''],
  ['with two', 'Host: localhost\r\nHost: example.com\r\n'],
])('a request %s is refused', async (_, hosts) => {
  const answer = await raw(`GET /v1/webhooks HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`)

  expect(answer).toMatchObject({ status: 400, code: 'malformed_request' })
})

function head(headers: Record<string, string> = {}): string {
  const all = { Host: 'localhost', Authorization: `Bearer ${service.keys.live}`, Connection: 'close', ...headers }
  return Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
}

async function raw(bytes: string) {
  const { status, headers, body } = await sendRaw(service.url, { bytes })
  return { status, headers, ...errorOf({ headers, body: JSON.parse(body) }) }
}
