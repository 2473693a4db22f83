import { createHmac, timingSafeEqual } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { type Received, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let receiver: Receiver
let webhookId: string
let secret: string

beforeAll(async () => {
  service = await startTestService()
  receiver = await startReceiver()
  const body = { url: receiver.url, events: ['subscriber.added' as const] }
  const webhook = await service.client.succeed(contract.webhooks.create, { body })
  webhookId = webhook.id
  secret = webhook.secret
})
afterAll(async () => {
  await service.stop()
  await receiver.stop()
})

/** Adds a person whose name takes more than ASCII, and answers the delivery that tells of it. */
async function deliver(): Promise<Received> {
  const count = receiver.requests.length + 1
  const email = `person-${count}@example.com`
  await service.client.succeed(contract.subscribers.create, { body: { email, firstName: 'Zoë 😀' } })
  const received = await receiver.received(count)
  return received[count - 1] ?? expect.fail('nothing was delivered')
}

/** All that a receiver without a library needs. */
function accepts(request: Received, key: string): boolean {
  const expected = createHmac('sha256', key).update(request.body).digest('hex')
  const given = request.headers['x-service-signature'] ?? ''
  return given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected))
}

test('the public Standard Webhooks verifier accepts a delivery, and none that was altered', async () => {
  const { headers, body } = await deliver()
  const verifier = new Webhook(secret)
  expect(verifier.verify(body, headers)).toMatchObject({ id: headers['webhook-id'], type: 'subscriber.added' })
  expect(() => verifier.verify(`${body} `, headers)).toThrow(/signature/i)
  const replayed = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 3600) }
  expect(() => verifier.verify(body, replayed)).toThrow(/too old/i)
})

test('ten lines of HMAC accept a delivery, and none that was altered', async () => {
  const request = await deliver()
  expect(accepts(request, secret)).toBe(true)
  expect(accepts({ ...request, body: Buffer.from(`${request.body} `) }, secret)).toBe(false)
  expect(accepts(request, `${secret}x`)).toBe(false)
})

test('after a rotation the verifier takes both secrets, the plain header the new one', async () => {
  const rotated = await service.client.succeed(contract.webhooks.rotateSecret, { params: { id: webhookId }, body: {} })
  const request = await deliver()
  for (const key of [secret, rotated.secret]) {
    expect(new Webhook(key).verify(request.body, request.headers)).toMatchObject({ type: 'subscriber.added' })
  }
  expect(accepts(request, rotated.secret)).toBe(true)
  expect(accepts(request, secret)).toBe(false)
})

test('a test event verifies like any other', async () => {
  const { secret: key } = await service.client.succeed(contract.webhooks.rotateSecret, {
    params: { id: webhookId },
    body: {},
  })
  const result = await service.client.succeed(contract.webhooks.test, { params: { id: webhookId }, body: {} })
  expect(result).toEqual({ success: true, responseTime: expect.any(Number) })
  const request = receiver.requests.at(-1) ?? expect.fail('nothing was delivered')
  expect(accepts(request, key)).toBe(true)
  expect(new Webhook(key).verify(request.body, request.headers)).toMatchObject({ type: 'subscriber.added' })
})
