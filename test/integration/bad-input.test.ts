import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { checkAnswer } from '../support/answer-check.ts'
import type { Answer, SendOptions, TestClient } from '../support/client.ts'
import { deadUrl } from '../support/fixtures.ts'
import { sendRaw } from '../support/raw-http.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Requests of hostile or mistaken clients to the whole service. That every operation refuses every kind
 * of fault is tested in test/contract; the modules by themselves in test/http.
 */

let service: TestService
let client: TestClient

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false } })
  client = service.client
})
afterAll(() => service.stop())

function refusal({ status, body }: Answer): unknown[] {
  const { code, details } = Object(body).error ?? {}
  return [status, code, ...(details ?? []).map(({ path }: { path: string }) => path)]
}

const good = { url: deadUrl, events: ['contact.created'] }
const asJson = { 'content-type': 'application/json' }

describe('a body', () => {
  test.each<[string, SendOptions, unknown[]]>([
    ['that is not JSON', { raw: '{"url":', headers: asJson }, [400, 'malformed_json']],
    ['that is not UTF-8', { raw: Buffer.from([0x22, 0xff, 0x22]), headers: asJson }, [400, 'malformed_json']],
    ['without a content type', { raw: JSON.stringify(good) }, [415, 'unsupported_media_type']],
    [
      'of a form',
      { raw: 'url=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      [415, 'unsupported_media_type'],
    ],
    [
      'in another character set',
      { raw: '{}', headers: { 'content-type': 'application/json; charset=utf-16' } },
      [415, 'unsupported_media_type'],
    ],
    [
      'that is compressed',
      { raw: '{}', headers: { ...asJson, 'content-encoding': 'gzip' } },
      [415, 'unsupported_media_type'],
    ],
    ['beyond the limit', { json: { ...good, description: 'x'.repeat(70_000) } }, [413, 'payload_too_large']],
    [
      'nested ten thousand deep',
      { raw: '['.repeat(10_000) + ']'.repeat(10_000), headers: asJson },
      [400, 'validation_error', 'body'],
    ],
    ['that is missing', {}, [400, 'validation_error', 'body']],
    ['with an unknown field', { json: { ...good, secret: 'mine' } }, [400, 'validation_error', 'body.secret']],
    [
      'with two faults',
      { json: { events: ['contact.created', 'x'] } },
      [400, 'validation_error', 'body.url', 'body.events[1]'],
    ],
  ])('%s is refused', async (_, options, expected) => {
    expect(refusal(await client.send('POST', '/v1/webhooks', options))).toEqual(expected)
  })
})

describe('a query', () => {
  test.each([
    ['limit=0', 'query.limit'],
    ['limit=101', 'query.limit'],
    ['limit=ten', 'query.limit'],
    ['limit=', 'query.limit'],
    ['limit=1&limit=2', 'query.limit'],
    ['cursor=%00', 'query.cursor'],
    ['cursor=nonsense', 'query.cursor'],
    ['sort=name', 'query.sort'],
    ['__proto__=1', 'query.__proto__'],
  ])('?%s is refused', async (query, path) => {
    expect(refusal(await client.send('GET', `/v1/webhooks?${query}`))).toEqual([400, 'validation_error', path])
  })
})

test.each([
  ['/v1/webhooks?limit=ten', 'must be a whole number from 1 to 100'],
  ['/v1/events?since=yesterday', /^must be a time such as 2026-03-01T09:30:00Z or 2026-03-01T10:30:00\+01:00$/],
  [
    '/v1/events?since=2026-03-01T10:30:00+01:00',
    /^must be a time such as 2026-03-01T09:30:00Z .* with the \+ written as %2B in a query$/,
  ],
  ['/v1/events?after=42', /^must look like "evt_[0-9a-z]{26}"$/],
])('a refusal of GET %s says what would be taken', async (path, message) => {
  const { body } = await client.send('GET', path)
  expect(Object(body).error.details).toEqual([expect.objectContaining({ message: expect.stringMatching(message) })])
})

describe('a path', () => {
  test.each([
    ['unknown', '/v1/webhook', [404, 'not_found']],
    ['with a slash at the end', '/v1/webhooks/', [404, 'not_found']],
    ['in other letter case', '/V1/Webhooks', [404, 'not_found']],
    ['with an empty part', '/v1//webhooks', [404, 'not_found']],
    ['that climbs up', '/v1/webhooks/../../etc/passwd', [404, 'not_found']],
    ['with an escape that is none', '/v1/webhooks/%zz', [400, 'malformed_request']],
    ['with an escape that is not UTF-8', '/v1/webhooks/%ff', [400, 'malformed_request']],
    ['with a NUL', '/v1/webhooks/%00', [404, 'not_found']],
  ])('%s is refused', async (_, path, expected) => {
    expect(refusal(await client.send('GET', path))).toEqual(expected)
  })

  const usual = 'Nothing is at this path: see /docs for those there are.'
  test.each([
    ['/v1/webhook', usual],
    ['/webhooks', `${usual} Those of the API begin with "/v1/".`],
    ['/v1/webhooks/', `${usual} None of them ends with a slash.`],
  ])('%s, which is unknown, is refused with the usual cause', async (path, message) => {
    const { body } = await client.send('GET', path)
    expect(Object(body).error.message).toBe(message)
  })
})

describe('bytes on the wire', () => {
  const authorized = () => `Host: x\r\nConnection: close\r\nAuthorization: Bearer ${service.keys.live}\r\n`
  test.each<[string, () => string, number, string]>([
    ['that are no HTTP', () => 'HELO example.com\r\n\r\n', 400, 'malformed_request'],
    ['of a TLS handshake', () => '\u0016\u0003\u0001\u0002\u0000\u0001', 400, 'malformed_request'],
    ['without a Host', () => 'GET /v1/webhooks HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'malformed_request'],
    ['of HTTP/3.0', () => `GET /v1/webhooks HTTP/3.0\r\n${authorized()}\r\n`, 400, 'malformed_request'],
    ['with a space in the path', () => `GET /v1/web hooks HTTP/1.1\r\n${authorized()}\r\n`, 400, 'malformed_request'],
    [
      'with a NUL in a header',
      () => `GET /v1/webhooks HTTP/1.1\r\nX: \0\r\n${authorized()}\r\n`,
      400,
      'malformed_request',
    ],
    [
      'with a folded header',
      () => `GET /v1/webhooks HTTP/1.1\r\nX: a\r\n b\r\nTransfer-Encoding : chunked\r\n${authorized()}\r\n`,
      400,
      'malformed_request',
    ],
    [
      'with two lengths',
      () => `POST /v1/webhooks HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n${authorized()}\r\n{}`,
      400,
      'malformed_request',
    ],
    [
      'with a length and chunks',
      () => `POST /v1/webhooks HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n${authorized()}\r\n{}`,
      400,
      'malformed_request',
    ],
    [
      'with a negative length',
      () => `POST /v1/webhooks HTTP/1.1\r\nContent-Length: -1\r\n${authorized()}\r\n`,
      400,
      'malformed_request',
    ],
    [
      'with a chunk that has no size',
      () =>
        `POST /v1/webhooks HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n${authorized()}\r\nxyz\r\n`,
      400,
      'malformed_request',
    ],
    [
      'with 20 KiB of headers',
      () => `GET /v1/webhooks HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n${authorized()}\r\n`,
      431,
      'headers_too_large',
    ],
    [
      'that ask for a tunnel',
      () => 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n',
      405,
      'method_not_allowed',
    ],
    ['about the server itself', () => `OPTIONS * HTTP/1.1\r\n${authorized()}\r\n`, 404, 'not_found'],
    ['for another host', () => `GET http://example.com/v1/nothing HTTP/1.1\r\n${authorized()}\r\n`, 404, 'not_found'],
  ])('%s are refused', async (_, bytes, status, code) => {
    const answer = await sendRaw(service.url, { bytes: bytes() })
    expect(checkAnswer(answer).faults).toEqual([])
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([status, code])
  })

  test('bytes broken off in the middle of a body harm nobody', async () => {
    const head = `POST /v1/webhooks HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n${authorized()}\r\n{"url":`
    const { connect } = await import('node:net')
    const { hostname, port } = new URL(service.url)
    await new Promise<void>((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) }, () =>
        socket.write(head, () => socket.resetAndDestroy()),
      )
      socket.on('close', () => resolve())
      socket.on('error', reject)
    })
    expect((await client.send('GET', '/v1/webhooks')).status).toBe(200)
  })

  test('a good request behind a good one on the wire is answered too', async () => {
    const keptOpen = `Host: x\r\nAuthorization: Bearer ${service.keys.live}\r\n`
    const bytes = `GET /v1/event-types HTTP/1.1\r\n${keptOpen}\r\nGET /v1/nothing HTTP/1.1\r\n${authorized()}\r\n`
    const { body } = await sendRaw(service.url, { bytes, path: '/v1/event-types' })
    expect(body.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 404'])
  })
})

test.each([
  ['unknown', ['contact.created', 'contact.eaten'], 'body.events[1]'],
  ['duplicated', ['contact.created', 'contact.created'], 'body.events'],
  ['empty', [], 'body.events'],
  ['not a list', 'contact.created', 'body.events'],
  ['of another kind', [1], 'body.events[0]'],
])('the event types of a webhook are refused when they are %s', async (_, events, path) => {
  const answer = await client.send('POST', '/v1/webhooks', { json: { url: deadUrl, events } })
  expect(refusal(answer)).toEqual([400, 'validation_error', path])
})

describe('the URL of a webhook', () => {
  test.each([
    ['', 'nothing'],
    ['/hooks', 'a path'],
    ['ftp://example.com/', 'another scheme'],
    ['javascript:alert(1)', 'a script'],
    ['https://user@example.com/', 'a user name'],
    ['https://:secret@example.com/', 'a password'],
    ['https://example.com/#part', 'a fragment'],
    ['https://exa mple.com/', 'a space'],
    [`https://example.com/${'x'.repeat(2048)}`, 'too many characters'],
  ])('%s is refused: %s', async (url) => {
    const answer = await client.send('POST', '/v1/webhooks', { json: { ...good, url } })
    expect(refusal(answer).slice(0, 3)).toEqual([400, 'validation_error', 'body.url'])
  })

  describe('where only https to public addresses is allowed', () => {
    let strict: TestService
    let id: string

    beforeAll(async () => {
      const webhooks = { allowHttp: false, allowPrivateNetworks: false }
      strict = await startTestService({ roles: { worker: false }, webhooks })
      const created = await strict.client.succeed(contract.webhooks.create, {
        body: { url: 'https://example.com/', events: ['contact.created'] },
      })
      id = created.id
    })
    afterAll(() => strict.stop())

    test.each([
      'http://example.com/',
      'https://127.0.0.1/',
      'https://127.1/',
      'https://2130706433/',
      'https://0x7f000001/',
      'https://0177.0.0.1/',
      'https://0/',
      'https://10.0.0.1/',
      'https://172.16.0.1/',
      'https://192.168.1.1/',
      'https://100.64.0.1/',
      'https://169.254.169.254/latest/meta-data/',
      'https://224.0.0.1/',
      'https://255.255.255.255/',
      'https://[::1]/',
      'https://[::]/',
      'https://[::ffff:127.0.0.1]/',
      'https://[::ffff:a00:1]/',
      'https://[64:ff9b::7f00:1]/',
      'https://[2002:7f00:1::]/',
      'https://[fe80::1]/',
      'https://[fd00::1]/',
      'https://localhost/',
      'https://localhost./',
      'https://127.0.0.1./',
    ])('%s is refused on create and on update', async (url) => {
      const refused = [422, 'rule_violation', 'body.url']
      expect(refusal(await strict.client.send('POST', '/v1/webhooks', { json: { ...good, url } }))).toEqual(refused)
      expect(refusal(await strict.client.send('PATCH', `/v1/webhooks/${id}`, { json: { url } }))).toEqual(refused)
    })

    test.each(['https://%31%32%37.0.0.1/', 'https://１２７.0.0.1/'])('%s is no URI at all', async (url) => {
      const refused = [400, 'validation_error', 'body.url']
      expect(refusal(await strict.client.send('POST', '/v1/webhooks', { json: { ...good, url } }))).toEqual(refused)
      expect(refusal(await strict.client.send('PATCH', `/v1/webhooks/${id}`, { json: { url } }))).toEqual(refused)
    })
  })
})

describe('an Idempotency-Key', () => {
  test.each([
    ['empty', ''],
    ['too long', 'x'.repeat(256)],
    ['not ASCII', 'schlüssel'],
  ])('an Idempotency-Key is refused when it is %s', async (_, idempotencyKey) => {
    const answer = await client.send('POST', '/v1/webhooks', { json: good, idempotencyKey })
    expect(refusal(answer)).toEqual([400, 'validation_error', 'header.idempotency-key'])
  })

  test('sent twice at once does the work once', async () => {
    const json = { name: 'Twice' }
    const requests = Array.from({ length: 5 }, () =>
      client.send('POST', '/v1/audiences', { json, idempotencyKey: 'twice' }),
    )
    const answers = await Promise.all(requests)
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1)
    const { data } = await client.succeed(contract.audiences.list, { query: { limit: 100 } })
    expect(data.filter(({ name }) => name === 'Twice')).toHaveLength(1)
  })
})
