import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { createLoneEvents } from '../../server/fan-out/lone-events.ts'
import { createOutbox, type NewEvent } from '../../server/outbox/append.ts'
import { newId } from '../../server/shared/ids.ts'
import { attempted, type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, type Behaviour, type Receiver, startReceiver } from '../support/receiver.ts'
import { live } from '../support/scope.ts'

let engine: Engine
let receiver: Receiver

beforeEach(async () => {
  receiver = await startReceiver()
  engine = await startEngine()
  // It has looked into the outbox once.
  await expect.poll(() => engine.workers.leasing.lease(engine.accountId)).not.toBeNull()
})
afterEach(async () => {
  await engine.stop()
  await receiver.stop()
})

/** Answers nothing until it is told to. Returns what answers all. */
function hold(): () => void {
  const held: Parameters<Behaviour>[0][] = []
  receiver.respond((exchange) => held.push(exchange))
  return () => {
    receiver.respond(answer(200))
    for (const exchange of held) answer(200)(exchange)
  }
}

const outboxRows = async () =>
  (
    await sql<{ event_id: string; isLeased: boolean }>`
      SELECT event_id, lease IS NOT NULL AS "isLeased" FROM outbox_rows ORDER BY event_id
    `.execute(engine.db)
  ).rows

const deleted = (): NewEvent => ({
  type: 'contact.deleted',
  data: { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) },
})

/** Appends through the workers, as the engine does. */
function outbox(wake: () => void = () => engine.workers.wakeFanOut()) {
  return createOutbox({
    clock: engine.clock,
    wake,
    loneEvents: createLoneEvents({ clock: engine.clock, leasing: engine.workers.leasing }),
  })
}

test('an event that comes alone is delivered without a fan-out, and is in no list until it is written down', async () => {
  const release = hold()
  const id = await engine.addWebhook(receiver.url)
  let fanOuts = 0
  const [event = ''] = await inTransaction(engine.db, (trx) =>
    outbox(() => (fanOuts += 1)).append(trx, live(engine.accountId), [deleted()]),
  )
  await receiver.received(1)
  release()
  const row = await engine.deliveryOf(id, hasSucceeded)
  expect(row).toMatchObject({ event_id: event, attempt_count: 1, next_attempt_at: null })
  expect(await engine.attemptsOf(row.id)).toEqual([{ number: 1, response_status: 200, error: null }])
  expect(await engine.queue.withoutJob(engine.db, [row.id])).toEqual([row.id])
  expect(await outboxRows()).toEqual([])
  expect(fanOuts).toBe(0)
})

test('an event that comes alone reaches a webhook that was made before its commit, and not one made after it', async () => {
  await inTransaction(engine.db, async (trx) => {
    await outbox().append(trx, live(engine.accountId), [deleted()])
    await engine.addWebhook(`${receiver.url}/before`)
  })
  await engine.addWebhook(`${receiver.url}/after`)
  await receiver.received(1)
  await expect.poll(outboxRows).toEqual([])
  expect(receiver.requests.map(({ url }) => url)).toEqual(['/hooks/before'])
})

test('an event that comes alone is not delivered when its transaction is undone', async () => {
  const id = await engine.addWebhook(receiver.url)
  await inTransaction(engine.db, async (trx) => {
    await outbox().append(trx, live(engine.accountId), [deleted()])
    throw new Error('undone')
  }).catch(() => undefined)
  const [event] = await engine.emit()
  await engine.deliveryOf(id, hasSucceeded)
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([event])
})

test('an event that comes alone is left to other processes when this one stops before its commit', async () => {
  await engine.addWebhook(receiver.url)
  await inTransaction(engine.db, async (trx) => {
    await outbox().append(trx, live(engine.accountId), [deleted()])
    await engine.workers.stop(1_000)
  })
  await expect.poll(async () => (await outboxRows()).map(({ isLeased }) => isLeased)).toEqual([false])
})

test('an event that comes alone leaves the outbox also when no webhook receives it', async () => {
  await engine.emit()
  await expect.poll(outboxRows).toEqual([])
})

test('an event that comes alone is written as a pending delivery that this process has claimed when its attempt takes long', async () => {
  const release = hold()
  const id = await engine.addWebhook(receiver.url)
  await engine.emit()
  const row = await engine.deliveryOf(id)
  expect(row).toMatchObject({ status: 'pending', attempt_count: 0 })
  expect(await engine.queue.claimed(engine.db, [row.id])).toEqual(new Set([row.id]))
  expect(await outboxRows()).toEqual([])
  release()
  expect(await engine.deliveryOf(id, hasSucceeded)).toMatchObject({ attempt_count: 1 })
  expect(receiver.requests).toHaveLength(1)
})

test('an event that comes alone is tried again in a minute when its attempt fails', async () => {
  receiver.respond(answer(500))
  const id = await engine.addWebhook(receiver.url)
  await engine.emit()
  const row = await engine.deliveryOf(id, attempted(1))
  expect(row).toMatchObject({ status: 'pending' })
  receiver.respond(answer(200))
  await engine.advance(61)
  expect(await engine.deliveryOf(id, hasSucceeded)).toMatchObject({ attempt_count: 2 })
  const failingSince = async () =>
    (await engine.db.selectFrom('webhooks').select('failing_since').where('id', '=', id).executeTakeFirstOrThrow())
      .failing_since
  await expect.poll(failingSince).toBeNull()
})

test('an event that comes alone is canceled when its webhook is disabled before the attempt fails', async () => {
  const held: Parameters<Behaviour>[0][] = []
  receiver.respond((exchange) => held.push(exchange))
  const id = await engine.addWebhook(receiver.url)
  await engine.emit()
  await receiver.received(1)
  await engine.db
    .updateTable('webhooks')
    .set({ status: 'disabled', disabled_reason: 'manual' })
    .where('id', '=', id)
    .execute()
  for (const exchange of held) answer(500)(exchange)
  const row = await engine.deliveryOf(id, attempted(1))
  expect(row).toMatchObject({ status: 'canceled', next_attempt_at: null })
  expect(await engine.queue.withoutJob(engine.db, [row.id])).toEqual([row.id])
})

test('events of one account that are not written yet keep those of no other account from being delivered', async () => {
  const stranger = await engine.addAccount()
  const id = await engine.addWebhook(receiver.url)
  // It has a counter of positions from its first event on.
  await engine.emit(1, 'contact.deleted', stranger)
  await expect.poll(outboxRows).toEqual([])
  // Nothing of this account leaves the outbox meanwhile.
  await inTransaction(engine.db, async (trx) => {
    await sql`SELECT FROM event_counters WHERE account_id = ${stranger} FOR UPDATE`.execute(trx)
    // None of them has a delivery. A process holds 32 of such events here, as many as it has places.
    for (let count = 0; count < 5; count++) await engine.emit(16, 'contact.deleted', stranger)
    await expect.poll(async () => (await outboxRows()).filter((row) => row.isLeased)).toHaveLength(32)
    const [event] = await engine.emit()
    await receiver.received(1)
    expect(receiver.requests[0]?.headers['webhook-id']).toBe(event)
  })
  await engine.deliveryOf(id, hasSucceeded)
  await expect.poll(outboxRows).toEqual([])
})

test('the fan-out takes what is appended with many others, and what has no room in hand', async () => {
  const release = hold()
  const id = await engine.addWebhook(receiver.url)
  await engine.emit(17)
  await engine.emit(16)
  release()
  await engine.deliveriesOf(id, 33, hasSucceeded)
  await expect.poll(outboxRows).toEqual([])
  expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(33)
  expect(receiver.requests).toHaveLength(33)
})

test('a process of the version before sees no event that is leased, and sees it again when the lease has lapsed', async () => {
  hold()
  await engine.addWebhook(receiver.url)
  await engine.workers.stop(1_000)
  const [event = ''] = await engine.emit()
  const seen = async () =>
    (await sql<{ event_id: string }>`SELECT event_id FROM outbox FOR UPDATE SKIP LOCKED`.execute(engine.db)).rows
  expect(await seen()).toEqual([{ event_id: event }])
  await sql`
    UPDATE outbox_rows SET lease = gen_random_uuid(), leased_until = pgboss.job_now() + interval '20 s'
  `.execute(engine.db)
  expect(await seen()).toEqual([])
  const deletion = sql`DELETE FROM outbox WHERE event_id = ${event}`
  expect((await deletion.execute(engine.db)).numAffectedRows).toBe(0n)
  await engine.advance(21)
  expect(await seen()).toEqual([{ event_id: event }])
  expect((await deletion.execute(engine.db)).numAffectedRows).toBe(1n)
  // It left with its position, whoever took it out.
  const positions = await engine.db.selectFrom('event_positions').select('event_id').execute()
  expect(positions).toEqual([{ event_id: event }])
})
