import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newId } from '../../server/shared/ids.ts'
import { createExchange } from '../../server/webhook-delivery/attempt/exchange.ts'
import { reconcile } from '../../server/webhook-delivery/reconcile.ts'
import { attempted, type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { someFlow } from '../support/flows.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { createTestTimer, type TestTimer } from '../support/timer.ts'

/*
 * Rows that the service never writes: of a restored backup, a manual change of the database, or a faulty disk.
 * Whatever such a row contains, all other deliveries are made, and its own delivery shows why it was not.
 */

let engine: Engine
let receiver: Receiver
let timer: TestTimer
let webhookId: string

beforeEach(async () => {
  timer = createTestTimer()
  const exchange = createExchange({
    policy: { allowHttp: true, allowPrivateNetworks: true },
    clock: { now: () => engine.clock.now() },
    startTimer: timer.startTimer,
  })
  engine = await startEngine({ exchange })
  receiver = await startReceiver()
  webhookId = await engine.addWebhook(receiver.url)
})
afterEach(async () => {
  await engine.stop()
  await receiver.stop()
})

const delivered = (count: number) => engine.someDeliveriesOf(webhookId, count, hasSucceeded)

const jobs = async () => (await sql`SELECT 1 FROM pgboss.job WHERE name = 'deliveries'`.execute(engine.db)).rows.length

/** Commits and fans out some events with no worker running, so that rows can be changed before they are read. */
async function emitUnread(count: number): Promise<string[]> {
  await engine.workers.stop(1_000)
  const ids = await engine.emit(count)
  await engine.fanOut()
  return ids
}

test.each([
  ['is none', 'nowhere at all'],
  ['is empty', ''],
  ['has no host', 'http://'],
  ['is of another protocol', 'ftp://example.com/hooks'],
  ['is no address of a server', 'mailto:ada@example.com'],
])('a webhook whose URL %s is told so in its attempts, and holds nobody up', async (_, url) => {
  const brokenId = await engine.addWebhook(url)
  await engine.emit(3)
  await delivered(3)
  const [row] = await engine.deliveriesOf(brokenId, 3, attempted(1))
  expect(row?.status).toBe('pending')
  expect(await engine.attemptsOf(row?.id ?? '')).toEqual([
    { number: 1, response_status: null, error: expect.stringMatching(/^The URL of the webhook .* Set another/) },
  ])
  // Nothing of an attempt that could not be made is left to run into its end.
  expect(timer.waiting).toBe(0)
  timer.advance(30_000)
})

test('an event whose identifier cannot stand in a header fails alone, with a reason', async () => {
  const [id] = await emitUnread(3)
  const broken = 'evt_\r\nX-Admin: yes'
  await engine.db
    .updateTable('events')
    .set({ id: broken })
    .where('id', '=', id ?? '')
    .execute()
  await engine.db
    .updateTable('deliveries')
    .set({ event_id: broken })
    .where('event_id', '=', id ?? '')
    .execute()
  await engine.startWorkers()
  await delivered(2)
  const rows = await engine.deliveriesOf(webhookId, 3, attempted(1))
  const row = rows.find((one) => one.event_id === broken)
  expect(row?.status).toBe('pending')
  expect(await engine.attemptsOf(row?.id ?? '')).toMatchObject([
    { error: expect.stringMatching(/fault of the service/) },
  ])
  expect(receiver.requests).toHaveLength(2)
})

test.each([
  ['is empty', ''],
  ['is no JSON', '{"id":'],
  ['is enormous', `"${'x'.repeat(10 * 1024 * 1024)}"`],
])('an event whose body %s is sent as it is stored, and signed', async (_, body) => {
  const [id = ''] = await emitUnread(3)
  await engine.db.updateTable('events').set({ body }).where('id', '=', id).execute()
  await engine.startWorkers()
  await delivered(3)
  const sent = receiver.requests.find(({ headers }) => headers['webhook-id'] === id)
  expect(sent?.body.toString()).toBe(body)
  expect(sent?.headers['x-service-signature']).toMatch(/^[0-9a-f]{64}$/)
})

test('a job without its delivery is put away, and the others go on', async () => {
  const [gone = ''] = await emitUnread(3)
  await engine.db.deleteFrom('deliveries').where('event_id', '=', gone).execute()
  expect(await jobs()).toBe(3)
  await engine.startWorkers()
  await delivered(2)
  await expect.poll(jobs).toBe(0)
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).not.toContain(gone)
})

test('a job without its delivery is put away also when it is of no delivery there ever was', async () => {
  await emitUnread(1)
  const strangers = Array.from({ length: 50 }, () => newId('delivery', engine.clock.now()))
  await engine.db.transaction().execute((trx) =>
    engine.queue.flows.put(
      trx,
      strangers.map((deliveryId) => ({ deliveryId, flow: someFlow, dueAt: null })),
    ),
  )
  await engine.startWorkers()
  await delivered(1)
  await expect.poll(jobs).toBe(0)
})

test('a delivery without its job waits, is found by the reconciler, and is made once', async () => {
  const [id] = await emitUnread(3)
  const rows = await engine.deliveriesNow(webhookId)
  const lost = rows.find((row) => row.event_id === id)?.id ?? expect.fail('no delivery')
  await engine.db.transaction().execute((trx) => engine.queue.remove(trx, [lost]))
  await engine.startWorkers()
  await delivered(2)
  expect(await reconcile(engine)).toBe(1)
  engine.workers.wakeDelivery()
  await delivered(3)
  expect(await reconcile(engine)).toBe(0)
  expect(receiver.requests).toHaveLength(3)
})

test('a delivery without its job is given one although the job is there and has failed for good', async () => {
  await emitUnread(2)
  await sql`UPDATE pgboss.job SET state = 'failed', completed_on = now() WHERE name = 'deliveries'`.execute(engine.db)
  expect(await reconcile(engine)).toBe(2)
  await engine.startWorkers()
  await delivered(2)
})
