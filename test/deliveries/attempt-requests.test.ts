import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { keptWebhookUrls } from '../../contract/deliveries.ts'
import { attempted, type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, type Received, type Receiver, startReceiver } from '../support/receiver.ts'
import { live } from '../support/scope.ts'

let engine: Engine
let receiver: Receiver
let webhookId: string

beforeAll(async () => {
  engine = await startEngine()
  receiver = await startReceiver()
})
afterAll(async () => {
  await engine.stop()
  await receiver.stop()
})
beforeEach(async () => {
  webhookId = await engine.addWebhook(urlOf('first'))
})

afterEach(async () => {
  await engine.db.deleteFrom('webhooks').execute()
})

const urlOf = (path: string) => `${receiver.url}/${path}`

async function moveTo(url: string): Promise<void> {
  await engine.db.updateTable('webhooks').set({ url }).where('id', '=', webhookId).execute()
}

async function requestsOf(deliveryId: string) {
  const { attempts } = await engine.deliveries.get(engine.db, live(engine.accountId), webhookId, deliveryId)
  return attempts.map(({ request }) => request)
}

/** Headers of the connection, and those that an attempt says it does not tell. */
const untold = ['accept-encoding', 'connection', 'content-length', 'host', 'webhook-signature', 'x-service-signature']

/** Returns a request that arrived, as its attempt should tell it. */
function asTold({ url, headers }: Received) {
  const told = Object.entries(headers).filter(([name]) => !untold.includes(name))
  return { url: new URL(url, receiver.url).href, headers: Object.fromEntries(told) }
}

test('each attempt tells the request that the endpoint got, at the URL that the webhook had then', async () => {
  receiver.respondOnce(answer(500), answer(500))
  await engine.emit()
  const { id } = await engine.deliveryOf(webhookId, attempted(1))
  await moveTo(urlOf('second'))
  await engine.advance(61)
  await engine.deliveryOf(webhookId, attempted(2))
  await moveTo(urlOf('third'))
  await engine.advance(301)
  await engine.deliveryOf(webhookId, hasSucceeded)
  const requests = await requestsOf(id)
  expect(requests).toEqual(receiver.requests.map(asTold))
  expect(requests.map((request) => request?.url)).toEqual(['first', 'second', 'third'].map(urlOf))
})

test('attempts that succeed at once and tests tell their requests too', async () => {
  const before = receiver.requests.length
  await engine.emit()
  const { id } = await engine.deliveryOf(webhookId, hasSucceeded)
  await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'email.delivered')
  const sample = (await engine.deliveriesNow(webhookId)).find((one) => one.id !== id)
  const requests = [...(await requestsOf(id)), ...(await requestsOf(sample?.id ?? ''))]
  expect(requests).toEqual(receiver.requests.slice(before).map(asTold))
  expect(requests.map((request) => request?.headers['x-service-sample'])).toEqual([undefined, 'true'])
})

test('the URL of an attempt is known until the URL of its webhook has changed 20 times', async () => {
  await engine.emit()
  const { id } = await engine.deliveryOf(webhookId, hasSucceeded)
  const first = urlOf('first')
  for (let change = 1; change < keptWebhookUrls; change++) await moveTo(urlOf(`change-${change}`))
  expect((await requestsOf(id)).map((request) => request?.url)).toEqual([first])
  await moveTo(urlOf('one-too-many'))
  expect((await requestsOf(id)).map((request) => request?.url)).toEqual([null])
  const kept = await engine.db.selectFrom('webhook_urls').selectAll().where('webhook_id', '=', webhookId).execute()
  expect(kept).toHaveLength(keptWebhookUrls)
})

test('an attempt of a process of before, which kept no version of the webhook, shows no request', async () => {
  await engine.emit()
  const { id } = await engine.deliveryOf(webhookId, hasSucceeded)
  await engine.db.updateTable('attempts').set({ webhook_version: null }).where('delivery_id', '=', id).execute()
  expect(await requestsOf(id)).toEqual([null])
})
