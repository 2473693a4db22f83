import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createDeliveryService } from '../../../server/deliveries/service.ts'
import { newId } from '../../../server/shared/ids.ts'
import { type Engine, hasEnded, hasSucceeded, startEngine } from '../../support/engine.ts'
import { answer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { live } from '../../support/scope.ts'

let engine: Engine
let receiver: Receiver
let webhookId: string
/** Before everything. */
let since: Date

beforeEach(async () => {
  engine = await startEngine()
  receiver = await startReceiver()
  webhookId = await engine.addWebhook(receiver.url, ['contact.deleted', 'contact.created'])
  since = engine.clock.now()
})
afterEach(async () => {
  await engine.stop()
  await receiver.stop()
})

const received = () => receiver.requests.map(({ headers }) => headers['webhook-id'])
const set = (status: 'enabled' | 'disabled') =>
  engine.db
    .updateTable('webhooks')
    .set({ status, disabled_reason: status === 'enabled' ? null : 'manual' })
    .execute()
const ask = (more: { until?: string; types?: ('contact.deleted' | 'contact.created')[] } = {}) =>
  engine.deliveries.recover(engine.db, live(engine.accountId), webhookId, { since: since.toISOString(), ...more })

/** Emits events that nobody is sent. */
async function miss(count: number, type: 'contact.deleted' | 'contact.created' = 'contact.deleted') {
  await set('disabled')
  const ids = await engine.emit(count, type)
  await expect.poll(() => engine.db.selectFrom('outbox_rows').selectAll().execute()).toEqual([])
  await set('enabled')
  return ids
}

test('a recovery sends what came while the webhook was disabled, and what 410 canceled, once; samples are left out', async () => {
  const [accepted] = await engine.emit()
  await receiver.received(1)
  receiver.respondOnce(answer(500), answer(410))
  await engine.deliveries.sendTest(engine.db, live(engine.accountId), webhookId, 'contact.deleted')
  const [gone] = await engine.emit()
  await engine.deliveriesOf(webhookId, 3, hasEnded)
  const missed = await miss(3)
  expect(await ask()).toMatchObject({ started: true, status: 'running', count: 4, countIsExact: true, done: 0 })
  expect(await ask()).toMatchObject({ started: false, count: 4 })
  await engine.tick(2)
  await receiver.received(7)
  expect(
    received()
      .toSorted()
      .filter((id) => id !== received()[1]),
  ).toEqual([accepted, gone, gone, ...missed].toSorted())
  const again = await engine.recover(webhookId, since)
  expect(again).toMatchObject({ status: 'completed', count: 0, done: 0 })
  const { data } = await engine.deliveries.listRecoveries(engine.db, live(engine.accountId), webhookId, { limit: 10 })
  expect(data).toMatchObject([again, { status: 'completed', count: 4, done: 4 }])
})

test('a recovery is one when it is asked for three times at once, and says so; another one is refused meanwhile', async () => {
  await miss(5)
  const answers = await Promise.all([ask(), ask(), ask()])
  expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
  expect(answers.map(({ started }) => started).toSorted()).toEqual([false, false, true])
  await expect(ask({ types: ['contact.deleted'] })).rejects.toMatchObject({ code: 'conflict' })
  await engine.tick(2)
  await receiver.received(5)
  await engine.deliveriesOf(webhookId, 5, hasSucceeded)
  expect(new Set(received()).size).toBe(5)
  expect(receiver.requests).toHaveLength(5)
})

test('a recovery takes the events of a span, by the time in them, and of the types asked for and subscribed to now', async () => {
  await miss(1)
  await engine.advance(60)
  const created = await miss(1, 'contact.created')
  const from = engine.clock.now()
  const deleted = await miss(1)
  await engine.advance(60)
  const until = engine.clock.now().toISOString()
  await miss(1)
  since = from
  expect(await ask({ until, types: ['contact.deleted'] })).toMatchObject({
    count: 1,
    types: ['contact.deleted'],
    until,
  })
  await engine.tick(2)
  await receiver.received(1)
  expect(received()).toEqual(deleted)
  await engine.db
    .updateTable('webhooks')
    .set({ events: ['contact.created'] })
    .execute()
  await expect.poll(() => engine.recover(webhookId, from).catch(() => null)).toMatchObject({ count: 1, done: 1 })
  await receiver.received(2)
  expect(received()).toEqual([...deleted, ...created])
})

test('a recovery has events from before there were positions, and leaves out what awaits its fan-out', async () => {
  const old = await miss(3)
  await sql`
    INSERT INTO settings (name, value) VALUES ('last_event_without_position', ${old.at(-1)})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
  `.execute(engine.db)
  await sql`DELETE FROM event_positions`.execute(engine.db)
  await miss(2)
  await engine.workers.stop(1_000)
  await engine.emit(1)
  expect(await engine.recover(webhookId, since)).toMatchObject({ status: 'completed', count: 5, done: 5 })
  await engine.fanOut()
  const rows = await engine.deliveriesOf(webhookId, 6)
  expect(new Set(rows.map((row) => row.event_id)).size).toBe(6)
})

test('a recovery finds events and deliveries of a clock that was ahead by hours and then set back', async () => {
  const { db, queue, accountId, webhookChanges } = engine
  await engine.advance(6 * 3_600)
  const ahead = await miss(1)
  receiver.respondOnce(answer(410))
  const [failed] = await engine.emit()
  await engine.deliveryOf(webhookId, ({ status }) => status === 'failed')
  await set('enabled')
  await engine.workers.stop(1_000)
  // The clock of this process is right again: it is hours before what was made.
  const keyring = { keysOf: () => expect.fail('nothing is signed') }
  const exchange = { send: () => expect.fail('nothing is sent'), close: async () => undefined }
  const clock = { now: () => since }
  const deliveries = createDeliveryService({
    queue,
    exchange,
    keyring,
    clock,
    retentionMs: 86_400_000,
    wake: () => undefined,
    webhookChanges,
  })
  expect(await deliveries.recover(db, live(accountId), webhookId, { since: since.toISOString() })).toMatchObject({
    count: 2,
  })
  expect(await engine.recover(webhookId, since)).toMatchObject({ done: 2 })
  const rows = await engine.deliveriesNow(webhookId)
  expect(rows.map((row) => [row.event_id, row.status]).toSorted()).toEqual(
    [...ahead, failed].toSorted().map((id) => [id, 'pending']),
  )
})

test('a recovery ends when the webhook is disabled, says so, and another one sends the rest', async () => {
  await engine.workers.stop(1_000)
  await miss0(3)
  const { id } = await ask()
  await engine.db.transaction().execute((trx) => engine.deliveries.cancelPending(trx, webhookId))
  expect(await engine.deliveries.getRecovery(engine.db, live(engine.accountId), webhookId, id)).toMatchObject({
    status: 'canceled',
    done: 0,
    completedAt: expect.any(String),
  })
  expect(await engine.recover(webhookId, since)).toMatchObject({ status: 'completed', done: 3 })
})

/** As `miss`, without workers. */
async function miss0(count: number): Promise<void> {
  await set('disabled')
  await engine.emit(count)
  await engine.fanOut()
  await set('enabled')
}

test('a recovery is counted at once up to 2,000 events; beyond that it says that there are more, and how many in the end', async () => {
  await engine.workers.stop(1_000)
  await miss0(2_300)
  expect(await ask()).toMatchObject({ count: 2_000, countIsExact: false })
  const { id } = await ask()
  const done = await engine.recover(webhookId, since)
  expect(done).toMatchObject({ id, status: 'completed', count: 2_300, countIsExact: true, done: 2_300 })
})

test('a recovery belongs to its webhook and its account', async () => {
  const { db, accountId } = engine
  const { id } = await ask()
  const other = await engine.addWebhook(receiver.url)
  const refused = { code: 'not_found' }
  await expect(engine.deliveries.getRecovery(db, live(accountId), other, id)).rejects.toMatchObject(refused)
  const stranger = newId('account', engine.clock.now())
  await expect(engine.deliveries.getRecovery(db, live(stranger), webhookId, id)).rejects.toMatchObject(refused)
  await expect(engine.deliveries.listRecoveries(db, live(stranger), webhookId, { limit: 1 })).rejects.toMatchObject(
    refused,
  )
  expect((await engine.deliveries.listRecoveries(db, live(accountId), other, { limit: 1 })).data).toEqual([])
})

test('a recovery that a process of the version before was asked for is done', async () => {
  await miss(2)
  const data = {
    webhookId,
    since: since.toISOString(),
    until: new Date(engine.clock.now().getTime() + 1).toISOString(),
  }
  await engine.db.transaction().execute((trx) => engine.queue.addTask(trx, { name: 'recover', data }))
  // One task puts in the next, and each is found by a poll.
  const arrived = async () => {
    await engine.tick(2)
    return receiver.requests.length
  }
  await expect.poll(arrived).toBe(2)
})
