import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { attempted, type Engine, hasEnded, startEngine } from '../support/engine.ts'
import { claimFlows } from '../support/flows.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { live } from '../support/scope.ts'

let engine: Engine
let receiver: Receiver
let webhookId: string

beforeEach(async () => {
  engine = await startEngine()
  receiver = await startReceiver()
  webhookId = await engine.addWebhook(receiver.url)
})
afterEach(async () => {
  await engine.stop()
  await receiver.stop()
})

const minutes = 60
const hours = 3_600

/** The one delivery, after its attempt of this number. */
const afterAttempt = (number: number) => engine.deliveryOf(webhookId, attempted(number))

/** Seconds from now until the next attempt is due. */
function secondsUntil(at: Date | null): number | null {
  return at === null ? null : (at.getTime() - engine.clock.now().getTime()) / 1000
}

test('an event reaches the receiver once, as stored, and is settled as succeeded', async () => {
  const [eventId] = await engine.emit()
  const [request] = await receiver.received(1)
  const row = await afterAttempt(1)
  const event = await engine.db.selectFrom('events').selectAll().executeTakeFirstOrThrow()
  expect(request?.body.toString()).toBe(event.body)
  expect(request?.headers['webhook-id']).toBe(eventId)
  expect(row).toMatchObject({ status: 'succeeded', attempt_count: 1, next_attempt_at: null })
  expect(row.completed_at).toEqual(engine.clock.now())
  expect(await engine.attemptsOf(row.id)).toEqual([{ number: 1, response_status: 200, error: null }])
  expect(await engine.queue.withoutJob(engine.db, [row.id])).toEqual([row.id])
})

test('an event is tried after 1 min, 5 min, 30 min, 2 h and 24 h, never earlier, and then given up', async () => {
  receiver.respond(answer(500, { body: 'no' }))
  await engine.emit()
  const delays = [1 * minutes, 5 * minutes, 30 * minutes, 2 * hours, 24 * hours]
  for (const [index, delay] of delays.entries()) {
    const row = await afterAttempt(index + 1)
    const due = secondsUntil(row.next_attempt_at) as number
    expect(due).toBeGreaterThanOrEqual(delay)
    expect(due).toBeLessThan(delay + 0.01)
    await engine.advance(delay - 1)
    expect(await claimFlows(engine.queue, 10)).toEqual([])
    await engine.advance(2)
  }
  const last = await afterAttempt(6)
  expect(last).toMatchObject({ status: 'failed', next_attempt_at: null })
  expect(await engine.attemptsOf(last.id)).toHaveLength(6)
  expect(receiver.requests).toHaveLength(6)
  expect(new Set(receiver.requests.map((request) => request.body.toString())).size).toBe(1)
})

test.each([
  ['seconds', '3600', 3600],
  ['seconds beyond a day', '999999', 24 * hours],
  ['less than the schedule', '1', 60],
  ['a date in the past', 'Sun, 01 Mar 2026 09:00:00 GMT', 60],
  ['a date', 'Sun, 01 Mar 2026 10:30:00 GMT', 3600],
  ['garbage', 'soon', 60],
])('an event waits as long as an answer of 429 asks for: %s', async (_, header, seconds) => {
  receiver.respond(answer(429, { headers: { 'retry-after': header } }))
  await engine.emit()
  const row = await afterAttempt(1)
  expect(Math.floor(secondsUntil(row.next_attempt_at) as number)).toBe(seconds)
})

test('an event uses the URL and the secret of the moment for each attempt', async () => {
  receiver.respond(answer(500))
  await engine.emit()
  await afterAttempt(1)
  await using other = await startReceiver()
  const rotated = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
  await engine.db
    .updateTable('webhooks')
    .set({ url: other.url, secret: engine.secretBox.seal(rotated) })
    .execute()
  await engine.advance(61)
  const [second] = await other.received(1)
  expect(receiver.requests).toHaveLength(1)
  expect(second?.headers['x-service-signature']).not.toBe(receiver.requests[0]?.headers['x-service-signature'])
  await afterAttempt(2)
})

test('a webhook that fails is disabled at once by 410, and what is pending is canceled', async () => {
  receiver.respond(answer(500))
  await engine.emit(3)
  await engine.deliveriesOf(webhookId, 3, attempted(1))
  receiver.respond(answer(410))
  await engine.emit()
  const rows = await engine.deliveriesOf(webhookId, 4, hasEnded)
  expect(rows.map((row) => row.status).sort()).toEqual(['canceled', 'canceled', 'canceled', 'failed'])
  const webhook = await engine.db.selectFrom('webhooks').selectAll().executeTakeFirstOrThrow()
  expect(webhook).toMatchObject({ status: 'disabled', disabled_reason: 'gone' })
  expect(
    await engine.queue.withoutJob(
      engine.db,
      rows.map((row) => row.id),
    ),
  ).toHaveLength(4)
  await engine.emit()
  await engine.advance(3600)
  expect(receiver.requests).toHaveLength(4)
})

test('a webhook that fails is disabled after five days of nothing but failures, not before, and not if one succeeded', async () => {
  receiver.respond(answer(500))
  const status = async () =>
    (await engine.db.selectFrom('webhooks').select(['status', 'disabled_reason']).executeTakeFirstOrThrow()).status
  let count = 0
  async function failOnce(): Promise<void> {
    await engine.emit()
    count += 1
    await engine.deliveriesOf(webhookId, count, ({ attempt_count }) => attempt_count > 0)
  }
  await failOnce()
  await engine.advance(4 * 24 * hours)
  await failOnce()
  receiver.respondOnce(answer(200))
  await failOnce()
  await engine.advance(2 * 24 * hours)
  await failOnce()
  expect(await status()).toBe('enabled')
  await engine.advance(5 * 24 * hours + 1)
  await engine.emit(10)
  await engine.deliveriesOf(webhookId, count + 10, hasEnded)
  expect(await status()).toBe('disabled')
})

test('a webhook that fails is not disabled for few attempts in five days, and counts them anew after a successful test', async () => {
  receiver.respond(answer(500))
  await engine.emit()
  await afterAttempt(1)
  await engine.advance(5 * 24 * hours + 1)
  await afterAttempt(2)
  expect(await currentWebhook()).toMatchObject({ status: 'enabled', failing_attempts: 2 })
  receiver.respondOnce(answer(200))
  await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'contact.deleted')
  await engine.emit(9)
  await engine.someDeliveriesOf(webhookId, 10, ({ status }) => status === 'pending')
  await expect.poll(currentWebhook).toMatchObject({ status: 'enabled', failing_attempts: 9 })
  await engine.advance(5 * 24 * hours + 1)
  await engine.deliveriesOf(webhookId, 11, hasEnded)
  expect(await currentWebhook()).toMatchObject({ status: 'disabled', disabled_reason: 'failing' })
})

test('a webhook that fails does nothing but fail only until a success, also one that was sent before the failure', async () => {
  const answers = await hold(2)
  expect(await answers.next(500)).toMatchObject({ failing_since: engine.clock.now() })
  await answers.next(200)
  await expect.poll(currentWebhook).toMatchObject({ failing_since: null })
})

test('a webhook that fails is not disabled by a 410 of the URL it had before', async () => {
  const answers = await hold(1)
  await engine.db.updateTable('webhooks').set({ url: 'http://127.0.0.1:9/' }).execute()
  expect(await answers.next(410)).toMatchObject({ status: 'enabled' })
})

/** Has so many deliveries in flight at once, which are then answered one by one. */
async function hold(count: number) {
  const held: ServerResponse[] = []
  receiver.respond(({ response }) => held.push(response))
  await engine.emit(count)
  await receiver.received(count)
  let answered = 0
  return {
    /** Answers the next one. Resolves with the webhook when that is settled. */
    async next(status: number) {
      held[answered]?.writeHead(status).end()
      answered += 1
      await engine.someDeliveriesOf(webhookId, answered, ({ attempt_count }) => attempt_count > 0)
      return currentWebhook()
    },
  }
}

async function currentWebhook() {
  return engine.db.selectFrom('webhooks').selectAll().executeTakeFirstOrThrow()
}
