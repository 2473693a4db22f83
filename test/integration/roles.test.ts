import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { type App, startApp } from '../../server/app.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { startReceiver } from '../support/receiver.ts'
import { configOf, startTestService, type TestService } from '../support/service.ts'

/** So long between polls that only a wake-up explains what is prompt. */
const neverMs = 3_600_000

let api: TestService
let worker: App

beforeAll(async () => {
  api = await startTestService({ roles: { worker: false } })
  worker = await startApp(configOf({ roles: { api: false } }, api.database.connectionString), {
    logger: createLogger({ level: 'silent' }),
    pollIntervalMs: neverMs,
  })
})
afterAll(async () => {
  await worker.stop()
  await api.stop()
})

test('a process that is the API and one that works deliver together: what the one commits wakes the other', async () => {
  await using receiver = await startReceiver()
  await api.client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: ['subscriber.added'] } })
  await api.client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })
  const [request] = await receiver.received(1)
  expect(JSON.parse(request?.body.toString() ?? '')).toMatchObject({
    type: 'subscriber.added',
    data: { email: 'ada@example.com' },
  })
})

test('a process that is the API and one that works serve what each is for', async () => {
  const status = async (url: string, path: string) => (await fetch(`${url}${path}`)).status
  expect(await status(worker.url, '/v1/webhooks')).toBe(404)
  expect(await status(worker.url, '/docs')).toBe(404)
  for (const url of [worker.url, api.url]) {
    for (const path of ['/healthz', '/readyz', '/metrics']) expect(await status(url, path)).toBe(200)
  }
  const ready = await (await fetch(`${worker.url}/readyz`)).json()
  expect(ready).toMatchObject({ checks: { database: 'ok', migrations: 'ok', workers: 'ok' } })
})

const from = 'news@roles.test'
const to = 'ada@example.com'

test('an email with links is refused without PUBLIC_URL where the worker is no API, and no link leads to the worker', async () => {
  const domain = await api.client.succeed(contract.domains.create, { body: { name: 'roles.test' } })
  expect(domain.status).toBe('verified')
  const json = { from, to, subject: 'Tracked', html: '<p>Hi</p>', trackOpens: true }
  const refused = { status: 422, body: { error: { code: 'public_url_needed' } } }
  expect(await api.client.send('POST', '/v1/emails', { json })).toMatchObject(refused)

  // A process that knows the address takes it, and it waits for a worker that knows it too.
  const publicUrl = 'https://mail.example.com'
  await using knowing = await startTestService({ beside: api, roles: { worker: false }, publicUrl })
  const { id } = await knowing.client.succeed(contract.emails.send, { body: json })
  const recipient = async () => (await api.client.succeed(contract.emails.get, { params: { id } })).recipients[0]
  await expect.poll(recipient).toMatchObject({
    status: 'deferred',
    reason: expect.stringContaining('PUBLIC_URL is not set'),
  })
  await api.client.succeed(contract.emails.send, { body: { from, to, subject: 'Plain', text: 'Hi' } })
  const captured = async () =>
    (await api.client.succeed(contract.capturedMessages.list, { query: {} })).data.map(({ subject }) => subject)
  await expect.poll(captured).toEqual(['Plain'])
})

test('a key revoked elsewhere opens nothing any more, also where it was used a moment ago', async () => {
  const { db } = api.database
  const { apiKeys: keys } = createKeyServices()
  const made = await keys.create(db, {
    accountId: api.accountId,
    mode: 'live',
    permissions: ['full_access'],
    name: 'Short-lived',
  })
  const use = async () =>
    (await fetch(`${api.url}/v1/webhooks`, { headers: { authorization: `Bearer ${made.key}` } })).status
  expect(await use()).toBe(200)
  await keys.revoke(db, made.id)
  await expect.poll(use).toBe(401)
})
