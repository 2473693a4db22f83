import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { attempted, type DeliveryState, hasSucceeded, startEngine } from '../support/engine.ts'
import { claimFlows } from '../support/flows.ts'
import { answer, silence, startReceiver } from '../support/receiver.ts'

test.each([
  { places: 1, endpointMax: 1 },
  { places: 1, endpointMax: 1_000 },
  { places: 4, endpointMax: 2 },
  { places: 10_000, endpointMax: 1 },
  { places: 10_000, endpointMax: 1_000 },
])('a worker makes all with $places places, $endpointMax of them for one URL at most', async (settings) => {
  await using engine = await startEngine(settings)
  await using receiver = await startReceiver()
  const ids = [await engine.addWebhook(receiver.url), await engine.addWebhook(`${receiver.url}/other`)]
  const untilAll = (count: number, isMeant: (row: DeliveryState) => boolean) =>
    Promise.all(ids.map((id) => engine.deliveriesOf(id, count, isMeant)))
  await engine.emit(5)
  await untilAll(5, hasSucceeded)
  receiver.respond(answer(503))
  await engine.emit(5)
  await untilAll(10, attempted(1))
  receiver.respond(answer(200))
  await engine.advance(61)
  await untilAll(10, hasSucceeded)
})

test('neighbours are not held up by a webhook that hangs on everything', async () => {
  await using engine = await startEngine({ endpointMax: 4 })
  await using hung = await startReceiver()
  await using fine = await startReceiver()
  hung.respond(silence)
  const hungId = await engine.addWebhook(hung.url)
  await engine.emit(300)
  await engine.deliveriesOf(hungId, 300)
  await hung.received(4)
  const fineId = await engine.addWebhook(fine.url)
  await engine.emit(20)
  await engine.deliveriesOf(fineId, 20, hasSucceeded)
  expect(hung.requests.length).toBeLessThan(20)
})

test('neighbours are not held up by a webhook that catches up with what waits for it in the queue', async () => {
  await using engine = await startEngine({ endpointMax: 4 })
  await using behind = await startReceiver()
  await using fine = await startReceiver()
  behind.respond(answer(500))
  const behindId = await engine.addWebhook(behind.url)
  await engine.emit(400)
  await engine.deliveriesOf(behindId, 400, attempted(1))
  const fineId = await engine.addWebhook(fine.url)
  behind.respond((exchange) => void setTimeout(() => answer(200)(exchange), 10))
  await engine.advance(61)
  await behind.received(420)
  await engine.emit(1)
  await engine.emit(20)
  await fine.received(21)
  expect(behind.requests.length).toBeLessThan(700)
  await engine.deliveriesOf(fineId, 21, hasSucceeded)
  await engine.deliveriesOf(behindId, 421, hasSucceeded)
})

test('neighbours of another account are not held up by any number of URLs that hang', async () => {
  await using engine = await startEngine({ places: 16, endpointMax: 16 })
  await using hung = await startReceiver()
  await using fine = await startReceiver()
  hung.respond(silence)
  const hostile = await engine.addAccount()
  for (let count = 0; count < 40; count++) {
    await engine.addWebhook(`${hung.url}/${count}`, ['contact.deleted'], hostile)
  }
  await engine.emit(10, 'contact.deleted', hostile)
  // Of the 12 places for endpoints that are not known to answer it holds fewer than four times those that are free.
  await hung.received(10)
  const fineId = await engine.addWebhook(fine.url)
  await engine.emit(50)
  await engine.deliveriesOf(fineId, 50, hasSucceeded)
  expect(hung.requests).toHaveLength(10)
})

test('neighbours with the same URL share its limit', async () => {
  await using engine = await startEngine({ endpointMax: 4 })
  await using hung = await startReceiver()
  await using fine = await startReceiver()
  hung.respond(silence)
  for (let count = 0; count < 20; count++) await engine.addWebhook(hung.url)
  await engine.emit(5)
  await hung.received(4)
  const fineId = await engine.addWebhook(fine.url, ['contact.created'])
  await engine.emit(50, 'contact.created')
  await engine.deliveriesOf(fineId, 50, hasSucceeded)
  expect(hung.requests).toHaveLength(4)
})

test('what waits for a webhook goes to its new URL when it is moved, and none to the old one', async () => {
  await using engine = await startEngine({ endpointMax: 2 })
  await using before = await startReceiver()
  await using after = await startReceiver()
  before.respond(silence)
  const id = await engine.addWebhook(before.url)
  await engine.emit(40)
  await before.received(2)
  await engine.deliveriesOf(id, 40)
  await engine.db.updateTable('webhooks').set({ url: after.url }).where('id', '=', id).execute()
  await after.received(38)
  await engine.someDeliveriesOf(id, 38, hasSucceeded)
  expect(before.requests).toHaveLength(2)
})

test('what waits for a webhook is not claimed for long before it can be attempted', async () => {
  await using engine = await startEngine({ endpointMax: 4 })
  await using hung = await startReceiver()
  hung.respond(silence)
  const id = await engine.addWebhook(hung.url)
  await engine.emit(50)
  await hung.received(4)
  const ids = (await engine.deliveriesOf(id, 50)).map((row) => row.id)
  await expect.poll(async () => (await engine.queue.claimed(engine.db, ids)).size).toBe(4)
})

test('what waits for a webhook is made when it was put into the queue by a process of the version before', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  await engine.workers.stop(1_000)
  const id = await engine.addWebhook(receiver.url)
  await engine.emit(30)
  await engine.fanOut()
  // Fresh ones, retries, and those of a slow webhook.
  await sql`
      UPDATE pgboss.job SET created_on = created_on - interval '1 hour',
        priority = (ARRAY[2000000000, 1950000000, 963000000, -1, -7])[1 + get_byte(uuid_send(id), 15) % 5]
      WHERE name = 'deliveries'
    `.execute(engine.db)
  await engine.startWorkers()
  await engine.deliveriesOf(id, 30, hasSucceeded)
  expect(receiver.requests).toHaveLength(30)
})

test('a worker that dies loses nothing: what it had claimed is claimed again when it has been silent', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  await engine.workers.stop(1_000)
  const id = await engine.addWebhook(receiver.url)
  await engine.emit(3)
  await engine.fanOut()
  // Claimed by a process that is never heard of again.
  expect(await claimFlows(engine.queue, 10)).toHaveLength(3)
  await engine.startWorkers()
  await engine.advance(60)
  await engine.tick(60)
  await engine.deliveriesOf(id, 3, hasSucceeded)
  expect(receiver.requests).toHaveLength(3)
})

test('stopping finishes what is in flight, hands back what waits, and claims no more', async () => {
  await using engine = await startEngine({ endpointMax: 2 })
  await using receiver = await startReceiver()
  const releases: (() => void)[] = []
  receiver.respond(({ response }) => releases.push(() => response.end()))
  const id = await engine.addWebhook(receiver.url)
  await engine.emit(10)
  await receiver.received(2)
  const stopped = engine.workers.stop(10_000)
  for (const release of releases) release()
  await stopped
  const rows = await engine.deliveriesNow(id)
  expect(rows.filter((row) => row.status === 'succeeded')).toHaveLength(2)
  const pending = rows.filter((row) => row.status === 'pending').map((row) => row.id)
  // The others wait in the outbox, for anyone.
  const { rows: waiting } = await sql`SELECT FROM outbox_rows WHERE lease IS NULL`.execute(engine.db)
  expect(pending.length + waiting.length).toBe(8)
  expect(await sql`SELECT FROM outbox_rows WHERE lease IS NOT NULL`.execute(engine.db)).toMatchObject({ rows: [] })
  expect(await engine.queue.missing(engine.db, pending)).toEqual([])
  expect(await engine.queue.claimed(engine.db, pending)).toEqual(new Set())
})

test('stopping breaks off at the deadline what does not end, and hands it back uncounted', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  receiver.respond(silence)
  const id = await engine.addWebhook(receiver.url)
  await engine.emit(2)
  await receiver.received(2)
  await engine.workers.stop(100)
  const rows = await engine.deliveriesNow(id)
  expect(rows.map((row) => [row.status, row.attempt_count])).toEqual([
    ['pending', 0],
    ['pending', 0],
  ])
  expect(
    await engine.queue.claimed(
      engine.db,
      rows.map((row) => row.id),
    ),
  ).toEqual(new Set())
  expect(await claimFlows(engine.queue, 10)).toHaveLength(2)
})
