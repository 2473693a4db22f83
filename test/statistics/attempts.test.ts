import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { loadDue } from '../../server/webhook-delivery/load-deliveries.ts'
import { settle } from '../../server/webhook-delivery/settlement/settle-attempts.ts'
import type { Settlement } from '../../server/webhook-delivery/settlement/settlement-types.ts'
import { attempted, type Engine, hasEnded, startEngine } from '../support/engine.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { live, testing } from '../support/scope.ts'
import { miscounted, statisticsOf } from '../support/statistics.ts'

let engine: Engine
let receiver: Receiver

beforeEach(async () => {
  receiver = await startReceiver()
  engine = await startEngine()
})
afterEach(async () => {
  await engine.stop()
  await receiver.stop()
})

const totalsOf = async (query = {}) =>
  (await statisticsOf(engine.db, engine.clock, live(engine.accountId), query)).totals.webhooks

test('attempts are counted for their webhook and for the account as soon as they are settled', async () => {
  const [one, other] = [await engine.addWebhook(`${receiver.url}/1`), await engine.addWebhook(`${receiver.url}/2`)]
  await engine.emit(3)
  for (const webhook of [one, other]) await engine.deliveriesOf(webhook, 3, hasEnded)
  expect(await totalsOf({ webhookId: one })).toMatchObject({
    attempts: 3,
    failedAttempts: 0,
    succeededDeliveries: 3,
    failedDeliveries: 0,
  })
  const all = await totalsOf()
  expect(all).toMatchObject({ attempts: 6, succeededDeliveries: 6, rates: { failure: 0 } })
  expect(all?.histogram.reduce((sum, { count }) => sum + count, 0)).toBe(6)
  expect(await miscounted(engine.db)).toEqual([])
})

test('attempts that fail are counted one by one, and the delivery once, when it has failed for good', async () => {
  receiver.respond(answer(500))
  const webhook = await engine.addWebhook(receiver.url)
  const [eventId] = await engine.emit()
  for (let attempt = 1; attempt <= 6; attempt++) {
    await engine.deliveryOf(webhook, attempted(attempt))
    const figures = await totalsOf({ webhookId: webhook, step: 'day' })
    expect(figures).toMatchObject({
      attempts: attempt,
      failedAttempts: attempt,
      failedDeliveries: attempt === 6 ? 1 : 0,
      rates: { failure: 1 },
    })
    await engine.advance(25 * 3_600)
  }
  expect(eventId).toBeDefined()
  expect(await miscounted(engine.db)).toEqual([])
})

test('attempts without an answer are counted, and have no latency', async () => {
  receiver.respond(({ socket }) => socket.destroy())
  const webhook = await engine.addWebhook(receiver.url)
  await engine.emit()
  await engine.deliveryOf(webhook, attempted(1))
  expect(await totalsOf()).toMatchObject({
    attempts: 1,
    failedAttempts: 1,
    latency: { averageMs: null, p50Ms: null, p99Ms: null },
  })
})

test('attempts are counted in the hour in which they began', async () => {
  const webhook = await engine.addWebhook(receiver.url)
  await engine.emit()
  await engine.deliveriesOf(webhook, 1, hasEnded)
  await engine.advance(3_600)
  await engine.emit(2)
  await engine.deliveriesOf(webhook, 3, hasEnded)
  const { data } = await statisticsOf(engine.db, engine.clock, live(engine.accountId))
  expect(data).toHaveLength(24)
  expect(data.slice(-2).map(({ start, webhooks }) => [start, webhooks?.attempts])).toEqual([
    ['2026-03-01T09:00:00.000Z', 1],
    ['2026-03-01T10:00:00.000Z', 2],
  ])
})

test('attempts are counted in the mode of the webhook, and for no other account', async () => {
  const webhook = await engine.addWebhook(receiver.url)
  await engine.db.updateTable('webhooks').set({ mode: 'test' }).where('id', '=', webhook).execute()
  const another = await engine.addAccount()
  await engine.emit()
  await engine.deliveriesOf(webhook, 1, hasEnded)
  const { db, clock, accountId } = engine
  const attemptsIn = async (scope: ReturnType<typeof live>) =>
    (await statisticsOf(db, clock, scope)).totals.webhooks?.attempts
  expect(await attemptsIn(testing(accountId))).toBe(1)
  expect(await attemptsIn(live(accountId))).toBe(0)
  expect(await attemptsIn(testing(another))).toBe(0)
})

test('attempts of a test are not counted', async () => {
  const webhook = await engine.addWebhook(receiver.url)
  expect(await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhook, 'contact.deleted')).toMatchObject(
    { success: true },
  )
  expect(await totalsOf()).toMatchObject({ attempts: 0 })
})

/** An attempt at a delivery that waits in the queue, as a worker would settle it. */
async function attemptOf(webhook: string, kind: 'succeeded' | 'retry'): Promise<Settlement> {
  await engine.workers.stop(1_000)
  await engine.emit()
  await engine.fanOut()
  const { id } = await engine.deliveryOf(webhook)
  const [delivery] = await loadDue(engine.db, [id])
  if (delivery === undefined || 'passed' in delivery) throw new Error('the delivery is not due')
  const startedAt = engine.clock.now()
  const outcome = { kind: 'answered', status: 200, body: '', startedAt, durationMs: 42, reposted: false }
  const verdict = kind === 'succeeded' ? { kind } : { kind, delaySeconds: 60, error: 'no' }
  return { delivery, outcome, verdict } as unknown as Settlement
}

test.each(['succeeded', 'retry'] as const)(
  'a batch of attempts that is settled twice is counted once: %s',
  async (kind) => {
    const settlement = await attemptOf(await engine.addWebhook(receiver.url), kind)
    await settle(engine, [settlement])
    await settle(engine, [settlement])
    expect(await totalsOf()).toMatchObject({
      attempts: 1,
      failedAttempts: kind === 'succeeded' ? 0 : 1,
      latency: { averageMs: 42 },
    })
    expect(await miscounted(engine.db)).toEqual([])
  },
)

test('a batch of attempts of which the transaction rolls back is not counted', async () => {
  const settlement = await attemptOf(await engine.addWebhook(receiver.url), 'retry')
  const rolledBack = inTransaction(engine.db, async (trx) => {
    await settle({ ...engine, db: trx as never }, [settlement])
    throw new Error('rolled back')
  })
  await expect(rolledBack).rejects.toThrow('rolled back')
  expect(await totalsOf()).toMatchObject({ attempts: 0 })
})

test('a batch of attempts for many webhooks is counted for each of them', async () => {
  const webhooks = await Promise.all(Array.from({ length: 20 }, (_, n) => engine.addWebhook(`${receiver.url}/${n}`)))
  await engine.emit(5)
  for (const webhook of webhooks) await engine.deliveriesOf(webhook, 5, hasEnded)
  expect(await totalsOf()).toMatchObject({ attempts: 100, succeededDeliveries: 100 })
  expect(await miscounted(engine.db)).toEqual([])
})
