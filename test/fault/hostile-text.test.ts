import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { type App, startApp } from '../../server/app.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { runNode } from '../main/service-process.ts'
import { createTestClient, type SendOptions, type TestClient } from '../support/client.ts'
import { answer, type Behaviour, type Receiver, startReceiver } from '../support/receiver.ts'
import { configOf, startTestService, type TestService } from '../support/service.ts'
import { hostileTexts, unprintable } from './support/hostile.ts'

/*
 * Text of strangers on its way through the service: into answers, logs and what commands print.
 */

const texts = Object.entries(hostileTexts)
const enormous = 10 * 1024 * 1024

let world: TestService
let app: App
let client: TestClient
let receiver: Receiver
/** All that is ever logged, at every level. */
const log: string[] = []

beforeAll(async () => {
  world = await startTestService({ roles: { api: false, worker: false } })
  const config = configOf({}, world.database.connectionString)
  app = await startApp(
    { ...config, http: { ...config.http, trustProxy: 1 } },
    {
      logger: createLogger({ level: 'trace', destination: { write: (text) => void log.push(text) } }),
      pollIntervalMs: 50,
    },
  )
  client = createTestClient({ url: app.url, key: world.keys.live })
  receiver = await startReceiver()
})
afterAll(async () => {
  await client?.close()
  await app?.stop()
  await receiver?.stop()
  await world?.stop()
})

const asJson = { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' }

test.each(texts)(
  'a name or a description with %s is kept as it is, and answered as JSON and nothing else',
  async (what, text) => {
    const email = `${what.replaceAll(/\W/g, '-')}@example.com`
    const { id } = await client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['contact.deleted'], description: text },
    })
    const person = await client.succeed(contract.subscribers.create, {
      body: { email, firstName: text, lastName: text },
    })
    const audience = await client.succeed(contract.audiences.create, { body: { name: text, description: text } })
    for (const [path, expected] of [
      [`/v1/webhooks/${id}`, { description: text }],
      [`/v1/subscribers/${person.id}`, { firstName: text, lastName: text }],
      [`/v1/audiences/${audience.id}`, { name: text, description: text }],
    ] as const) {
      const { headers, body } = await client.send('GET', path)
      expect(headers).toMatchObject(asJson)
      expect(body).toMatchObject(expected)
    }
    await client.succeed(contract.webhooks.delete, { params: { id } })
  },
)

test.each([
  ['a first name', '/v1/subscribers', { email: 'a@example.com', firstName: 'x'.repeat(enormous) }],
  [
    'the description of a webhook',
    '/v1/webhooks',
    { url: 'http://127.0.0.1:9/', events: ['contact.deleted'], description: 'x'.repeat(enormous) },
  ],
])('a name or a description with ten megabytes is refused, and not repeated: %s', async (_, path, json) => {
  const { status, text } = await client.send('POST', path, { json })
  expect(status).toBe(413)
  expect(text.length).toBeLessThan(500)
})

test('a name or a description with half a character is refused, and not changed', async () => {
  const raw = '{"email":"half@example.com","firstName":"\\ud83d!"}'
  const { status, body } = await client.send('POST', '/v1/subscribers', {
    raw,
    headers: { 'content-type': 'application/json' },
  })
  const details = [{ path: 'body.firstName', message: expect.stringContaining('half of a surrogate pair') }]
  expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: 'validation_error', details } } })
})

const long = 'x\u009b\u202e<b>'.repeat(1_000)
const inUrl = encodeURIComponent(long)
const post = (json: unknown): SendOptions => ({ json })
const email = { from: 'a@example.com', to: 'b@example.com', subject: 'Hi', text: 'Hello' }

test.each<[string, string, string, SendOptions]>([
  ['an unknown path', 'GET', `/v1/${inUrl.slice(0, 8_000)}`, {}],
  ['an identifier', 'GET', `/v1/webhooks/${inUrl.slice(0, 8_000)}`, {}],
  ['a key of the query', 'GET', `/v1/webhooks?${inUrl.slice(0, 8_000)}=1`, {}],
  ['a value of the query', 'GET', `/v1/webhooks?limit=${inUrl.slice(0, 8_000)}`, {}],
  ['a cursor', 'GET', `/v1/webhooks?cursor=${inUrl.slice(0, 8_000)}`, {}],
  ['a choice of the query', 'GET', `/v1/events?type=${inUrl.slice(0, 8_000)}`, {}],
  ['a time', 'GET', `/v1/events?since=${inUrl.slice(0, 8_000)}`, {}],
  ['a field', 'POST', '/v1/audiences', post({ name: 'a', [long]: 1 })],
  [
    'ten thousand fields',
    'POST',
    '/v1/audiences',
    post(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`${i}<b>`, i]))),
  ],
  ['a name', 'POST', '/v1/audiences', post({ name: long })],
  ['an address', 'POST', '/v1/subscribers', post({ email: long })],
  ['a URL', 'POST', '/v1/webhooks', post({ url: long, events: ['contact.created'] })],
  [
    'the host of a URL',
    'POST',
    '/v1/webhooks',
    post({ url: `http://${'x'.repeat(5_000)}/`, events: ['contact.created'] }),
  ],
  ['a recipient', 'POST', '/v1/emails', post({ ...email, to: long })],
  [
    'fifty recipients',
    'POST',
    '/v1/emails',
    post({ ...email, to: Array.from({ length: 50 }, () => `${long.slice(0, 400)}@`) }),
  ],
  ['the name of a header', 'POST', '/v1/emails', post({ ...email, headers: { [long.slice(0, 900)]: 'x' } })],
  ['the domain of a sender', 'POST', '/v1/emails', post({ ...email, from: `a@${'x.'.repeat(120)}example` })],
  [
    'a hundred emails',
    'POST',
    '/v1/emails/batch',
    post({ emails: Array.from({ length: 100 }, () => ({ [long.slice(0, 300)]: 1 })) }),
  ],
  ['a suppressed address', 'DELETE', `/v1/suppressions/${inUrl.slice(0, 8_000)}`, {}],
  ['an event type', 'POST', '/v1/webhooks', post({ url: 'http://127.0.0.1:9/', events: [long] })],
  [
    'ten thousand event types',
    'POST',
    '/v1/webhooks',
    post({ url: 'http://127.0.0.1:9/', events: Array.from({ length: 10_000 }, () => 'x') }),
  ],
  [
    'what is no JSON',
    'POST',
    '/v1/audiences',
    { raw: `{"name": ${long}`, headers: { 'content-type': 'application/json' } },
  ],
  ['a content type', 'POST', '/v1/audiences', { raw: '{}', headers: { 'content-type': 'x'.repeat(8_000) } }],
  ['an idempotency key', 'POST', '/v1/audiences', { json: { name: 'a' }, idempotencyKey: 'x'.repeat(8_000) }],
  ['an API key', 'GET', '/v1/webhooks', { key: 'x'.repeat(8_000) }],
])('what a refusal repeats of a request is bounded, whatever is wrong: %s', async (_, method, path, options) => {
  const { status, headers, text, body } = await client.send(method, path, options)
  expect(status).toBeGreaterThanOrEqual(400)
  expect(status).toBeLessThan(500)
  expect(headers).toMatchObject(asJson)
  // It may name all there is to choose from, but grows no further with the request.
  expect(Object(body).error.message.length).toBeLessThan(2_000)
  expect(text.length).toBeLessThan(30_000)
})

const raw =
  (text: string): Behaviour =>
  ({ socket }) =>
    socket.end(Buffer.from(text, 'utf8'))

async function answered(behaviour: Behaviour) {
  receiver.respond(behaviour)
  const { id } = await client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['contact.deleted'] },
  })
  const { success } = await client.succeed(contract.webhooks.test, { params: { id }, body: {} })
  const { data } = await client.succeed(contract.deliveries.list, { params: { id }, query: {} })
  const [delivery] = data
  const { headers, body } = await client.send('GET', `/v1/webhooks/${id}/deliveries/${delivery?.id}`)
  expect(headers).toMatchObject(asJson)
  await client.succeed(contract.webhooks.delete, { params: { id } })
  const [attempt] = Object(body).attempts
  return { success, attempt }
}

test.each(texts)('an endpoint that answers with %s has it in the log of the delivery as it is', async (_, text) => {
  const { attempt } = await answered(answer(500, { body: text }))
  expect(attempt).toMatchObject({ responseStatus: 500, responseBody: text })
})

test('an endpoint that answers with ten megabytes has 4 KiB of it there', async () => {
  const { success, attempt } = await answered(answer(200, { body: 'x'.repeat(enormous) }))
  expect(success).toBe(true)
  expect(attempt.responseBody).toBe('x'.repeat(4_096))
})

test.each([
  ['in its status line', 'HTTP/1.1 500 \u001b]0;t\u0007<script>\u202e\r\ncontent-length: 0\r\n\r\n', 500],
  ['in a header', 'HTTP/1.1 500 No\r\nx-evil: \u009b2J<script>\u202e\r\ncontent-length: 0\r\n\r\n', 500],
  [
    'in where it redirects to',
    'HTTP/1.1 302 Go\r\nlocation: javascript:alert(1)//\u009b2J\r\ncontent-length: 0\r\n\r\n',
    302,
  ],
  [
    'in Retry-After',
    'HTTP/1.1 503 No\r\nretry-after: \u009b2J<script>99999999999999999999\r\ncontent-length: 0\r\n\r\n',
    503,
  ],
  ['in what is no HTTP', '\u001b[2J<script>\u202e\r\n\r\n', null],
])('an endpoint that answers with escapes %s has none of it told', async (_, text, status) => {
  const { attempt } = await answered(raw(text))
  expect(attempt.responseStatus === status || attempt.responseStatus === null).toBe(true)
  expect(attempt.error).not.toMatch(unprintable)
  expect(attempt.error).not.toMatch(/script|javascript/)
  expect(attempt.error.length).toBeLessThan(300)
})

test('the log has the address a proxy names in it, with nothing a terminal would obey', async () => {
  const { status } = await client.send('GET', '/v1/event-types', {
    headers: { 'x-forwarded-for': '\u009b2J\u0085forged' },
  })
  expect(status).toBe(200)
  await expect.poll(() => log.join('')).toContain('\\u009b2J\\u0085forged')
})

test('the log stays one JSON object a line, each of a bounded length, whatever came', () => {
  expect(log.length).toBeGreaterThan(50)
  for (const line of log) {
    expect(line).toMatch(/^\{.*\}\n$/)
    expect(line).not.toMatch(unprintable)
    expect(line.length).toBeLessThan(20_000)
    expect(() => JSON.parse(line)).not.toThrow()
    expect(JSON.parse(line).msg).not.toBe('forged')
  }
})

const postern = (...args: string[]) =>
  runNode(['server/cli/postern.ts', ...args], { DATABASE_URL: world.database.connectionString })

/** Names that no command would have let in. */
async function insertNames(): Promise<void> {
  const { db } = world.database
  for (const [index, text] of Object.values(hostileTexts).entries()) {
    await db
      .insertInto('accounts')
      .values({ id: `acc_${index}`, name: text, plan: text })
      .execute()
  }
  await db
    .updateTable('api_keys')
    .set({ name: Object.values(hostileTexts).join('') })
    .execute()
}

test('what a command prints has nothing in it that a terminal would obey, and each row on a line', async () => {
  await insertNames()
  const [table, json] = await Promise.all([postern('accounts', 'list'), postern('keys', 'list', '--json')])
  const accounts = await world.database.db.selectFrom('accounts').select('id').execute()
  expect(table.stdout).not.toMatch(unprintable)
  expect(table.stdout.trimEnd().split('\n')).toHaveLength(accounts.length + 1)
  expect(json.stdout).not.toMatch(unprintable)
  expect(json.stdout).toMatch(/^\[.*\]\n$/)
  const [key] = JSON.parse(json.stdout)
  expect(key.name).toBe(Object.values(hostileTexts).join(''))
  const { stdout } = await postern('keys', 'revoke', key.id)
  expect(stdout).toMatch(/^The key .* is revoked\.\n$/)
  expect(stdout).not.toMatch(unprintable)
})
