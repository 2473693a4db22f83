import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { reconcile } from '../../server/webhook-delivery/reconcile.ts'
import { attempted, type Engine, hasEnded, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, type Behaviour, type Receiver, startReceiver } from '../support/receiver.ts'
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

const onlyDelivery = (attempts: number) => engine.deliveryOf(webhookId, attempted(attempts))

/** Answers when the test says so. */
function held(): { behaviour: Behaviour; release: (status: number) => void } {
  let release: (status: number) => void = () => {}
  return {
    behaviour: ({ response }) => {
      release = (status) => response.writeHead(status).end()
    },
    release: (status) => release(status),
  }
}

/** Cancels the delivery of an event while its attempt is in flight and sends it again. Returns its id. */
async function resendWhileInFlight(...behaviours: readonly [Behaviour, Behaviour]): Promise<string> {
  receiver.respondOnce(...behaviours)
  await engine.emit()
  await receiver.received(1)
  const { id } = await engine.deliveryOf(webhookId)
  await inTransaction(engine.db, (trx) => engine.deliveries.cancelPending(trx, webhookId))
  await engine.advance(1)
  await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  await receiver.received(2)
  return id
}

test('resending brings a scheduled retry forward and makes one sequence of attempts, not two', async () => {
  receiver.respond(answer(500))
  await engine.emit()
  const { id } = await onlyDelivery(1)
  await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  const row = await onlyDelivery(2)
  // The second failure of the schedule: five minutes.
  expect(Math.floor(((row.next_attempt_at as Date).getTime() - engine.clock.now().getTime()) / 1000)).toBe(300)
  await engine.advance(61)
  await engine.advance(240)
  await onlyDelivery(3)
  expect(receiver.requests).toHaveLength(3)
  expect((await engine.attemptsOf(id)).map((attempt) => attempt.number)).toEqual([1, 2, 3])
})

test('resending leaves an attempt in flight alone: it is the one asked for', async () => {
  const hold = held()
  receiver.respondOnce(hold.behaviour)
  await engine.emit()
  await receiver.received(1)
  const { id } = await engine.deliveryOf(webhookId)
  const answered = await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  expect(answered).toMatchObject({ status: 'pending', attemptCount: 0 })
  hold.release(200)
  expect(await onlyDelivery(1)).toMatchObject({ status: 'succeeded' })
  expect(receiver.requests).toHaveLength(1)
})

test('resending starts a delivery that has ended anew', async () => {
  await engine.emit()
  const { id } = await onlyDelivery(1)
  receiver.respond(answer(500))
  const answered = await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  expect(answered).toMatchObject({ status: 'pending', completedAt: null })
  const row = await onlyDelivery(2)
  expect(Math.floor(((row.next_attempt_at as Date).getTime() - engine.clock.now().getTime()) / 1000)).toBe(60)
})

test.each([
  ['failed', 500],
  ['succeeded', 200],
])(
  'resending sends a delivery again although an attempt from before it was canceled is in flight, which then %s',
  async (_, status) => {
    const hold = held()
    const id = await resendWhileInFlight(hold.behaviour, answer(204))
    expect(await onlyDelivery(1)).toMatchObject({ status: 'succeeded' })
    hold.release(status)
    expect(await onlyDelivery(2)).toMatchObject({ status: 'succeeded', next_attempt_at: null })
    expect((await engine.attemptsOf(id)).map((attempt) => attempt.response_status)).toEqual([204, status])
    expect(receiver.requests).toHaveLength(2)
  },
)

test('resending sends a delivery again also when the attempt from before ends first, and keeps both in the log', async () => {
  const [first, second] = [held(), held()]
  const id = await resendWhileInFlight(first.behaviour, second.behaviour)
  first.release(200)
  expect(await onlyDelivery(1)).toMatchObject({ status: 'pending' })
  second.release(500)
  // The first failure of a new schedule.
  const failed = await onlyDelivery(2)
  expect(Math.floor(((failed.next_attempt_at as Date).getTime() - engine.clock.now().getTime()) / 1000)).toBe(60)
  expect((await engine.attemptsOf(id)).map((attempt) => attempt.response_status)).toEqual([200, 500])
})

test('resending is refused while the webhook is disabled, and for another account', async () => {
  await engine.emit()
  const { id } = await onlyDelivery(1)
  await expect(engine.deliveries.resend(engine.db, live('acc_other'), webhookId, id)).rejects.toMatchObject({
    code: 'not_found',
  })
  await engine.db.updateTable('webhooks').set({ status: 'disabled', disabled_reason: 'manual' }).execute()
  await expect(engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)).rejects.toMatchObject({
    code: 'webhook_disabled',
  })
})

test('canceling ends what is pending and takes its jobs out', async () => {
  receiver.respond(answer(500))
  await engine.emit(2)
  await engine.deliveriesOf(webhookId, 2, attempted(1))
  await inTransaction(engine.db, (trx) => engine.deliveries.cancelPending(trx, webhookId))
  const rows = await engine.deliveriesOf(webhookId, 2, ({ status }) => status === 'canceled')
  expect(
    await engine.queue.withoutJob(
      engine.db,
      rows.map((row) => row.id),
    ),
  ).toHaveLength(2)
  await engine.advance(3 * 24 * 3600)
  expect(receiver.requests).toHaveLength(2)
})

test('canceling keeps the attempt that was in flight, and its success', async () => {
  const hold = held()
  receiver.respondOnce(hold.behaviour)
  await engine.emit()
  await receiver.received(1)
  await engine.deliveryOf(webhookId)
  await inTransaction(engine.db, (trx) => engine.deliveries.cancelPending(trx, webhookId))
  hold.release(200)
  expect(await onlyDelivery(1)).toMatchObject({ status: 'succeeded' })
})

test('a canceled delivery stays canceled, with the attempt in the log, when what was in flight failed', async () => {
  const hold = held()
  receiver.respondOnce(hold.behaviour)
  await engine.emit()
  await receiver.received(1)
  await engine.deliveryOf(webhookId)
  await inTransaction(engine.db, (trx) => engine.deliveries.cancelPending(trx, webhookId))
  hold.release(500)
  const row = await onlyDelivery(1)
  expect(row).toMatchObject({ status: 'canceled', next_attempt_at: null })
  expect(await engine.queue.withoutJob(engine.db, [row.id])).toEqual([row.id])
})

test('recovering sends everything again that failed or was canceled since, and nothing else', async () => {
  receiver.respond(answer(410))
  await engine.emit()
  await engine.deliveryOf(webhookId, ({ status }) => status === 'failed')
  await engine.advance(3600)
  const since = engine.clock.now()
  await engine.db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  receiver.respondOnce(answer(500), answer(500), answer(410))
  await engine.emit(3)
  await engine.deliveriesOf(webhookId, 4, hasEnded)
  await engine.db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  receiver.respond(answer(200))
  const { count } = await engine.deliveries.recover(engine.db, live(engine.accountId), webhookId, {
    since: since.toISOString(),
  })
  expect(count).toBe(3)
  await engine.tick(2)
  await engine.someDeliveriesOf(webhookId, 3, hasSucceeded)
  expect((await engine.deliveriesNow(webhookId))[0]?.status).toBe('failed')
  expect(receiver.requests).toHaveLength(7)
})

test('a test delivery sends a signed sample once, logs it, and stands in no list of events', async () => {
  const result = await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'domain.verified')
  expect(result).toEqual({ success: true, responseTime: expect.any(Number) })
  const row = await onlyDelivery(1)
  expect(row.status).toBe('succeeded')
  const body = JSON.parse(receiver.requests[0]?.body.toString() ?? '')
  expect(body).toMatchObject({ id: row.event_id, type: 'domain.verified', data: { domain: 'example.com' } })
  const event = await engine.db.selectFrom('events').selectAll().executeTakeFirstOrThrow()
  expect(event).toMatchObject({ id: row.event_id, sample: true })
})

test('a test delivery is marked in each attempt and in the log, also when it is sent again; others are not', async () => {
  receiver.respondOnce(answer(500))
  await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'email.bounced')
  const { id } = await onlyDelivery(1)
  await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  await onlyDelivery(2)
  await engine.emit()
  await receiver.received(3)
  await engine.deliveriesOf(webhookId, 2, hasSucceeded)
  expect(receiver.requests.map(({ headers }) => headers['x-service-sample'])).toEqual(['true', 'true', undefined])
  const { data } = await engine.deliveries.list(engine.db, live(engine.accountId), webhookId, { limit: 10 })
  expect(data.map(({ sample }) => sample)).toEqual([false, true])
  expect(await engine.deliveries.get(engine.db, live(engine.accountId), webhookId, id)).toMatchObject({
    sample: true,
  })
})

test('a test delivery that succeeds ends a run of failures, and one that fails changes nothing', async () => {
  const failing = { failing_since: engine.clock.now(), failing_attempts: 7 }
  await engine.db.updateTable('webhooks').set(failing).execute()
  const health = () =>
    engine.db.selectFrom('webhooks').select(['failing_since', 'failing_attempts', 'status']).executeTakeFirst()
  receiver.respond(answer(410))
  await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'contact.deleted')
  const { id } = await onlyDelivery(1)
  await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  await onlyDelivery(2)
  expect(await health()).toEqual({ ...failing, status: 'enabled' })
  receiver.respond(answer(200))
  await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'contact.deleted')
  expect(await health()).toEqual({ failing_since: null, failing_attempts: 0, status: 'enabled' })
})

test('a test delivery says what went wrong, and is tried once also when it is sent again', async () => {
  receiver.respond(answer(500))
  const result = await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'contact.deleted')
  expect(result).toEqual({ success: false, error: expect.stringContaining('500') })
  const { id } = await onlyDelivery(1)
  await engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)
  expect(await onlyDelivery(2)).toMatchObject({ status: 'failed', next_attempt_at: null })
})

test('the reconciler gives a pending delivery without a job a new one, and leaves the others alone', async () => {
  receiver.respond(answer(500))
  await engine.emit(2)
  const rows = await engine.deliveriesOf(webhookId, 2, attempted(1))
  const [lost, kept] = rows.map((row) => row.id) as [string, string]
  await inTransaction(engine.db, (trx) => engine.queue.remove(trx, [lost]))
  // Both were kept together, until a moment after their attempts.
  await expect.poll(() => engine.queue.missing(engine.db, [lost, kept])).toEqual([lost])
  expect(await reconcile(engine)).toBe(1)
  expect(await reconcile(engine)).toBe(0)
  receiver.respond(answer(200))
  await engine.advance(61)
  await engine.deliveriesOf(webhookId, 2, hasSucceeded)
})
