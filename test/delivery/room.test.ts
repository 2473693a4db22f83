import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { cancelDeliveries } from '../../server/delivery/cancel.ts'
import { claimDue } from '../../server/delivery/claim.ts'
import type { DeliveryWorker } from '../../server/delivery/worker.ts'
import { type FanOutMeans, fanOutBatch } from '../../server/outbox/fan-out.ts'
import { freshRange } from '../../server/queue/lanes.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { createTurns } from '../../server/queue/turns.ts'
import { startOwnWorker } from '../support/delivery-worker.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { answer, silence, startReceiver } from '../support/receiver.ts'

/* What is fanned out where there is room for it is delivered by the same process, without being claimed. */

const succeeded = (count: number) => (rows: { status: string }[]) =>
  rows.filter(({ status }) => status === 'succeeded').length === count

/** One that has found nothing in the queue. Room for 240. */
async function startWorker(engine: Engine, turns = createTurns()): Promise<AsyncDisposable & DeliveryWorker> {
  const lookedOnce = Promise.withResolvers<void>()
  function forget(): void {
    turns.forget()
    lookedOnce.resolve()
  }
  const worker = await startOwnWorker(engine, { turns: { ...turns, forget } })
  await lookedOnce.promise
  return worker
}

/** An engine whose claims a test can hold up, so that what is in the queue stays there. */
function holdableClaims(engine: Engine) {
  const { queue } = engine
  const underWay = new Set<Promise<unknown>>()
  let gate: Promise<void> | null = null
  async function claim(...args: Parameters<Queue['claim']>): ReturnType<Queue['claim']> {
    if (gate !== null) await gate
    const claiming = queue.claim(...args).finally(() => underWay.delete(claiming))
    underWay.add(claiming)
    return claiming
  }
  return {
    engine: { ...engine, workers: engine.workers, queue: { ...queue, claim } },
    /** From here on no claim begins, and none is under way when it resolves. Disposing lets them go on. */
    async hold(): Promise<Disposable> {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      await Promise.all(underWay)
      return { [Symbol.dispose]: resolve }
    },
  }
}

const fanOutInto = (engine: Engine, room: FanOutMeans['room'], turns = createTurns()) =>
  fanOutBatch({ ...engine, turns, ...(room === undefined ? {} : { room }) })
const roomFor = (size: number) => ({ size, onlyTurns: false })

/** How many wait in the queue, and how many are kept. */
async function whereabouts(engine: Engine): Promise<{ waiting: number; kept: number }> {
  const { rows } = await sql<{ waiting: number; kept: number }>`
    SELECT count(*) FILTER (WHERE name = 'deliveries' AND state < 'active')::int AS waiting,
      COALESCE(sum(jsonb_array_length(data -> 'deliveryIds')) FILTER (WHERE name = 'kept' AND state = 'active'), 0)::int AS kept
    FROM pgboss.job
  `.execute(engine.db)
  return rows[0] ?? expect.fail('no row')
}

it('is offered once, given back whole, and filled with what has been fanned out', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const id = await engine.addWebhook(receiver.url)
  await using worker = await startWorker(engine)
  {
    using first = await worker.offerRoom(false)
    using second = await worker.offerRoom(false)
    expect([first.size, second.size]).toEqual([240, 0])
  }
  const room = await worker.offerRoom(false)
  expect(room.size).toBe(240)
  await engine.emit(10)
  const { kept } = await fanOutInto(engine, room)
  expect(receiver.requests).toHaveLength(0)
  await room.fill(kept)
  await engine.deliveriesOf(id, succeeded(10))
  const sizeNow = async () => {
    using offered = await worker.offerRoom(false)
    return offered.size
  }
  await expect.poll(sizeNow).toBe(240)
})

it('is not there while deliveries wait in the queue, which were first', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const id = await engine.addWebhook(receiver.url)
  const claims = holdableClaims(engine)
  await using worker = await startWorker(claims.engine)
  {
    using _ = await claims.hold()
    await engine.emit(10)
    await engine.fanOut()
    worker.wake()
    using room = await worker.offerRoom(false)
    expect(room.size).toBe(0)
  }
  await engine.deliveriesOf(id, succeeded(10))
})

it('is there for those whose turn it is while a flood for others waits in the queue', async () => {
  await using engine = await startEngine()
  await using hung = await startReceiver()
  await using fine = await startReceiver()
  hung.respond(silence)
  await engine.addWebhook(hung.url)
  const turns = createTurns()
  await using worker = await startWorker(engine, turns)
  await engine.emit(500)
  await engine.fanOut()
  worker.wake()
  const isOnlyForTurns = async () => {
    using offered = await worker.offerRoom(false)
    return offered.onlyTurns
  }
  await expect.poll(isOnlyForTurns).toBe(true)

  await engine.db.updateTable('webhooks').set({ events: [] }).execute()
  const id = await engine.addWebhook(fine.url)
  await engine.emit(100)
  const room = await worker.offerRoom(false)
  const { kept, queued } = await fanOutInto(engine, room, turns)
  // As many as have their turn in a second.
  expect({ kept: kept.length, queued }).toEqual({ kept: 64, queued: 36 })
  await room.fill(kept)
  await engine.deliveriesOf(id, succeeded(64))
})

it('hands back what fills it when nothing is begun any more', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  await engine.addWebhook(receiver.url)
  await using worker = await startWorker(engine)
  using room = await worker.offerRoom(false)
  await engine.emit(10)
  const { kept } = await fanOutInto(engine, room)
  await worker.stop(0)
  expect(await whereabouts(engine)).toEqual({ waiting: 0, kept: 10 })
  await room.fill(kept)
  expect(await whereabouts(engine)).toMatchObject({ waiting: 10 })
  expect(receiver.requests).toHaveLength(0)
})

it('is all that a fan-out keeps, and slow webhooks have no part in it', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  await engine.addWebhook(receiver.url)
  const slowId = await engine.addWebhook(receiver.url)
  await engine.db.updateTable('webhooks').set({ slow: true }).where('id', '=', slowId).execute()
  await engine.workers.stop(1_000)
  await engine.emit(10)
  const { events, deliveries, kept } = await fanOutInto(engine, roomFor(4))
  // What there is no room for stays in the outbox: the next fan-out may have room.
  expect({ events, deliveries }).toEqual({ events: 4, deliveries: 8 })
  expect(kept.map(({ delivery }) => delivery.webhook.slow)).toEqual([false, false, false, false])
  expect(await whereabouts(engine)).toEqual({ waiting: 4, kept: 4 })
})

it('does not keep what is for a webhook disabled while it was fanned out', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const id = await engine.addWebhook(receiver.url)
  await engine.workers.stop(1_000)
  await engine.emit(2)
  await sql`
    CREATE FUNCTION disable() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN UPDATE webhooks SET status = 'disabled', disabled_reason = 'manual'; RETURN NULL; END $$
  `.execute(engine.db)
  await sql`CREATE TRIGGER disable AFTER INSERT ON deliveries EXECUTE FUNCTION disable()`.execute(engine.db)
  const { kept, deliveries } = await fanOutInto(engine, roomFor(10))
  expect({ kept, deliveries }).toEqual({ kept: [], deliveries: 2 })
  // Whoever claims them puts them away.
  expect(await claimDue(engine, freshRange, 10)).toEqual({ count: 2, claims: [] })
  await engine.deliveriesOf(id, (rows) => rows.every(({ status }) => status === 'canceled'))
})

it('is kept with one job, which ends when the last that fills it is settled', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const id = await engine.addWebhook(receiver.url)
  await using worker = await startWorker(engine)
  let release: () => void = () => undefined
  receiver.respondOnce((exchange) => {
    release = () => answer(200)(exchange)
  })
  await engine.emit(10)
  const room = await worker.offerRoom(false)
  const { kept } = await fanOutInto(engine, room)
  await room.fill(kept)
  await engine.deliveriesOf(id, succeeded(9))
  expect(await whereabouts(engine)).toEqual({ waiting: 0, kept: 10 })
  release()
  await engine.deliveriesOf(id, succeeded(10))
  await expect.poll(() => whereabouts(engine)).toEqual({ waiting: 0, kept: 0 })
})

it('has what failed tried again by a job of its own, and what was canceled by none', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const id = await engine.addWebhook(receiver.url)
  await using worker = await startWorker(engine)
  receiver.respond(answer(500))
  await engine.emit(2)
  const room = await worker.offerRoom(false)
  const { kept } = await fanOutInto(engine, room)
  const [canceled] = kept.map(({ delivery }) => delivery.id)
  await inTransaction(engine.db, (trx) => cancelDeliveries(trx, engine.queue, [canceled ?? '']))
  await room.fill(kept)
  await engine.deliveriesOf(id, (rows) => rows.every(({ attempt_count }) => attempt_count === 1))
  await expect.poll(() => whereabouts(engine)).toEqual({ waiting: 1, kept: 0 })
})

it('is filled by nothing that is not committed', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const id = await engine.addWebhook(receiver.url)
  // Refuses at the end of the transaction, when all of it is done. The sequence counts on in spite of that.
  await sql`CREATE SEQUENCE refusals`.execute(engine.db)
  await sql`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM nextval('refusals'); RAISE 'refused'; END $$
  `.execute(engine.db)
  await sql`
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON deliveries DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse()
  `.execute(engine.db)
  await engine.emit(5)
  const refusals = async () => {
    const { rows } = await sql<{ last: number }>`SELECT last_value::int AS last FROM refusals`.execute(engine.db)
    return rows[0]?.last ?? 0
  }
  await expect.poll(refusals).toBeGreaterThan(2)
  expect(receiver.requests).toHaveLength(0)
  await sql`DROP TRIGGER refuse ON deliveries`.execute(engine.db)
  await engine.deliveriesOf(id, succeeded(5))
  expect(receiver.requests).toHaveLength(5)
})
