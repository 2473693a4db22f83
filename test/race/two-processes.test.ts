import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Two processes of the service on one database, each the API and a worker, and requests that meet.
 */

let one: TestService
let two: TestService
let counter = 0

beforeAll(async () => {
  one = await startTestService()
  two = await startTestService({ beside: one })
})
afterAll(async () => {
  await two.stop()
  await one.stop()
})

/** The same done by both processes, `each` times, all at once. */
function atOnce<T>(each: number, work: (service: TestService, index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: 2 * each }, (_, index) => work(index % 2 === 0 ? one : two, Math.floor(index / 2))),
  )
}

async function webhookFor(url: string, events: ('subscriber.added' | 'contact.created')[]): Promise<string> {
  const { id } = await one.client.succeed(contract.webhooks.create, { body: { url, events } })
  return id
}

function idsOf({ requests }: Receiver): string[] {
  return requests.map(({ headers }) => headers['webhook-id'] ?? '')
}

test('what both commit is delivered once, by whichever claims it', async () => {
  await using receiver = await startReceiver()
  const id = await webhookFor(receiver.url, ['subscriber.added'])
  const people = await atOnce(60, ({ client }) =>
    client.succeed(contract.subscribers.create, { body: { email: `p${++counter}@example.com` } }),
  )
  await receiver.received(people.length)
  await expect
    .poll(async () => {
      const query = { status: 'pending' as const }
      return (await one.client.succeed(contract.deliveries.list, { params: { id }, query })).data
    })
    .toEqual([])
  expect(new Set(idsOf(receiver)).size).toBe(people.length)
  expect(receiver.requests).toHaveLength(people.length)
  await one.client.succeed(contract.webhooks.delete, { params: { id } })
})

test('one address becomes one person, whoever comes first', async () => {
  const email = `p${++counter}@example.com`
  const answers = await atOnce(5, ({ client }) => client.send('POST', '/v1/subscribers', { json: { email } }))
  const statuses = answers.map(({ status }) => status).toSorted()
  expect(statuses).toEqual([201, ...Array.from({ length: 9 }, () => 409)])
})

test('one person is put on one list once, and it is told once', async () => {
  const audience = await one.client.succeed(contract.audiences.create, { body: { name: 'Race' } })
  const email = `p${++counter}@example.com`
  const path = `/v1/audiences/${audience.id}/contacts`
  const answers = await atOnce(5, ({ client }) => client.send('POST', path, { json: { email } }))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(9)
  const { data } = await one.client.succeed(contract.events.list, { query: { type: 'contact.created' } })
  expect(data.filter(({ data: told }) => Object(told).audienceId === audience.id)).toHaveLength(1)
})

test('an Idempotency-Key that comes to both at once does its work once', async () => {
  const name = `Race ${++counter}`
  const options = { json: { name }, idempotencyKey: name }
  const answers = await atOnce(4, ({ client }) => client.send('POST', '/v1/audiences', options))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  const { data } = await one.client.succeed(contract.audiences.list, { query: { limit: 100 } })
  expect(data.filter((audience) => audience.name === name)).toHaveLength(1)
})

test('a delivery that is asked for again many times at once is sent once more', async () => {
  await using receiver = await startReceiver()
  receiver.respondOnce(answer(500))
  const id = await webhookFor(receiver.url, ['subscriber.added'])
  await one.client.succeed(contract.subscribers.create, { body: { email: `p${++counter}@example.com` } })
  const deliveries = async () =>
    (await one.client.succeed(contract.deliveries.list, { params: { id }, query: {} })).data
  await expect.poll(deliveries).toMatchObject([{ status: 'pending', attemptCount: 1 }])
  const deliveryId = (await deliveries())[0]?.id ?? expect.fail('the delivery is gone')

  // The next attempt lasts until all have asked for it.
  const held: ServerResponse[] = []
  receiver.respond(({ response }) => held.push(response))
  const answers = await atOnce(4, ({ client }) =>
    client.send('POST', `/v1/webhooks/${id}/deliveries/${deliveryId}/resend`, { json: {} }),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 202))
  await receiver.received(2)
  for (const response of held) response.end()
  await expect.poll(deliveries).toMatchObject([{ status: 'succeeded', attemptCount: 2 }])
  expect(receiver.requests).toHaveLength(2)
  await one.client.succeed(contract.webhooks.delete, { params: { id } })
})

test('a webhook that is disabled while deliveries come leaves none pending', async () => {
  await using receiver = await startReceiver()
  const id = await webhookFor(receiver.url, ['subscriber.added'])
  const params = { id }
  const adding = atOnce(30, ({ client }) =>
    client.succeed(contract.subscribers.create, { body: { email: `p${++counter}@example.com` } }),
  )
  await receiver.received(1)
  await two.client.succeed(contract.webhooks.update, { params, body: { status: 'disabled' } })
  await adding
  // No event becomes a delivery any more.
  await expect.poll(() => one.database.db.selectFrom('outbox_rows').selectAll().execute()).toEqual([])
  const pending = async () =>
    (await one.client.succeed(contract.deliveries.list, { params, query: { status: 'pending' } })).data
  await expect.poll(pending).toEqual([])
  await one.client.succeed(contract.webhooks.delete, { params })
})
