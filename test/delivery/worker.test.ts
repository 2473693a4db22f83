import type { ServerResponse } from 'node:http'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { fanOutBatch } from '../../server/outbox/fan-out.ts'
import { freshRange, rangeOfTurns, secondOf } from '../../server/queue/lanes.ts'
import { createTurns } from '../../server/queue/turns.ts'
import { startOwnWorker } from '../support/delivery-worker.ts'
import { startEngine } from '../support/engine.ts'
import { answer, silence, startReceiver } from '../support/receiver.ts'

const settledAs = (status: string, count: number) => (rows: { status: string }[]) =>
  rows.filter((row) => row.status === status).length === count

it('claims whatever its concurrency is', async () => {
  for (const concurrency of [4, 10_000]) {
    await using engine = await startEngine({ concurrency, webhookConcurrency: 2 })
    await using receiver = await startReceiver()
    const id = await engine.addWebhook(receiver.url)
    await engine.emit(5)
    await engine.deliveriesOf(id, settledAs('succeeded', 5))
    receiver.respond(answer(500))
    await engine.emit(2)
    await engine.deliveriesOf(id, (rows) => rows.filter((row) => row.attempt_count === 1).length === 7)
    receiver.respond(answer(200))
    await engine.advance(61)
    await engine.deliveriesOf(id, settledAs('succeeded', 7))
  }
})

describe('neighbours', () => {
  it('are not held up by a webhook that hangs on everything, which moves to the slow lane', async () => {
    await using engine = await startEngine({ concurrency: 32, webhookConcurrency: 4 })
    await using hung = await startReceiver()
    await using fine = await startReceiver()
    hung.respond(silence)
    const hungId = await engine.addWebhook(hung.url)
    await engine.emit(300)
    await engine.deliveriesOf(hungId, (rows) => rows.length === 300)
    await hung.received(4)
    const fineId = await engine.addWebhook(fine.url, ['contact.deleted'])
    await engine.emit(20)
    await engine.deliveriesOf(fineId, settledAs('succeeded', 20))
    const isSlow = () => engine.db.selectFrom('webhooks').select('slow').where('id', '=', hungId).executeTakeFirst()
    await expect.poll(isSlow).toEqual({ slow: true })
    expect(hung.requests.length).toBeLessThan(20)
  })

  it('do not wait for a webhook that hangs and whose turn it is all the same: it gives its turns up', async () => {
    await using engine = await startEngine()
    await using hung = await startReceiver()
    await using fine = await startReceiver()
    hung.respond(silence)
    await engine.workers.stop(1_000)
    await engine.addWebhook(hung.url)
    await engine.emit(500)
    // By a process that is behind, so that all have their turn, and more than there is room for.
    const clock = { now: () => new Date(engine.clock.now().getTime() - 60_000) }
    await fanOutBatch({ ...engine, clock, turns: createTurns() })
    const turns = createTurns()
    turns.reach(secondOf(engine.clock.now()), engine.clock.now())
    await engine.db.updateTable('webhooks').set({ events: [] }).execute()
    const fineId = await engine.addWebhook(fine.url)
    await engine.emit(5)
    await fanOutBatch({ ...engine, turns })

    // It is moved to the slow lane soon: what came before that is noted.
    await sql`CREATE TABLE handed_back (priority int)`.execute(engine.db)
    await sql`
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO public.handed_back VALUES (NEW.priority); RETURN NULL; END $$
    `.execute(engine.db)
    await sql`
      CREATE TRIGGER note AFTER UPDATE ON pgboss.job FOR EACH ROW
      WHEN (OLD.state = 'active' AND NEW.state = 'retry') EXECUTE FUNCTION note()
    `.execute(engine.db)
    await using _worker = await startOwnWorker(engine, { turns })
    await engine.deliveriesOf(fineId, settledAs('succeeded', 5))
    const { min } = rangeOfTurns(turns.come())
    const { rows } = await sql<{ givenUp: number }>`
      SELECT count(*)::int AS "givenUp" FROM handed_back WHERE priority BETWEEN 1 AND ${min - 1}
    `.execute(engine.db)
    expect(rows[0]?.givenUp).toBeGreaterThan(50)
  })

  it('do not stand behind what waits in the queue for a webhook that hangs: it changes lanes with it', async () => {
    await using engine = await startEngine({ concurrency: 16, webhookConcurrency: 2 })
    await using hung = await startReceiver()
    hung.respond(silence)
    const id = await engine.addWebhook(hung.url)
    await engine.emit(500)
    await engine.deliveriesOf(id, (rows) => rows.length === 500)
    await hung.received(2)
    await engine.advance(1)
    // What was claimed and handed back is in another state.
    const inSlowLane = async () => {
      const { rows } = await sql<{ moved: number; total: number }>`
        SELECT count(*)::int AS total, (count(*) FILTER (WHERE state = 'created'))::int AS moved
        FROM pgboss.job WHERE name = 'deliveries' AND priority < 0
      `.execute(engine.db)
      return rows[0]
    }
    await expect.poll(async () => (await inSlowLane())?.total).toBe(498)
    expect((await inSlowLane())?.moved).toBeGreaterThan(250)
    expect(await engine.deliveriesOf(id, () => true)).toHaveLength(500)
  })

  it('are not held up by any number of webhooks that hang on one delivery each', async () => {
    await using engine = await startEngine({ concurrency: 16, webhookConcurrency: 4 })
    await using hung = await startReceiver()
    await using fine = await startReceiver()
    hung.respond(silence)
    for (let count = 0; count < 20; count++) await engine.addWebhook(hung.url)
    await engine.emit()
    await hung.received(12)
    const fineId = await engine.addWebhook(fine.url, ['contact.created'])
    await engine.emit(5, 'contact.created')
    await engine.deliveriesOf(fineId, settledAs('succeeded', 5))
    const slow = () => engine.db.selectFrom('webhooks').select('id').where('slow', '=', true).execute()
    await expect.poll(async () => (await slow()).length).toBeGreaterThanOrEqual(12)
    expect((await slow()).map(({ id }) => id)).not.toContain(fineId)
  })

  it('get a webhook back into their lane when it has recovered, and nothing of it is lost', async () => {
    await using engine = await startEngine()
    await using receiver = await startReceiver()
    receiver.respond(answer(500))
    const id = await engine.addWebhook(receiver.url)
    const isSlow = async () =>
      (await engine.db.selectFrom('webhooks').select('slow').where('id', '=', id).executeTakeFirstOrThrow()).slow
    await engine.emit(40)
    await engine.deliveriesOf(id, (rows) => rows.length === 40 && rows.every((row) => row.attempt_count === 1))
    await expect.poll(isSlow).toBe(true)
    receiver.respond(answer(200))
    await engine.advance(61)
    await engine.deliveriesOf(id, settledAs('succeeded', 40))
    await engine.emit(20)
    await engine.deliveriesOf(id, settledAs('succeeded', 60))
    await expect.poll(isSlow).toBe(false)
  })
})

describe('a webhook in the slow lane', () => {
  it('goes on when what it had in flight in the normal lane has ended', async () => {
    await using engine = await startEngine({ concurrency: 32, webhookConcurrency: 4 })
    await using receiver = await startReceiver()
    const held: ServerResponse[] = []
    receiver.respond(({ response }) => held.push(response))
    const id = await engine.addWebhook(receiver.url)
    await engine.emit(10)
    await receiver.received(4)
    const ids = (await engine.deliveriesOf(id, () => true)).map((row) => row.id)
    const claimed = async () => (await engine.queue.claimed(engine.db, ids)).size
    // All are claimed at once. The others are handed back, and the slow lane claims one while those four fill the cap.
    await expect.poll(claimed).toBe(5)
    receiver.respond(answer(200))
    for (const response of held) response.end()
    await engine.deliveriesOf(id, settledAs('succeeded', 10))
  })
})

describe('a worker that dies', () => {
  it('loses nothing: what it had claimed is claimed again when it has been silent', async () => {
    await using engine = await startEngine()
    await using receiver = await startReceiver()
    await engine.workers.stop(1_000)
    const id = await engine.addWebhook(receiver.url)
    await engine.emit(3)
    await engine.fanOut()
    // Claimed by a process that is never heard of again.
    expect(await engine.queue.claim(freshRange, 10)).toHaveLength(3)
    await engine.startWorkers()
    await engine.advance(60)
    await engine.tick(60)
    await engine.deliveriesOf(id, settledAs('succeeded', 3))
    expect(receiver.requests).toHaveLength(3)
  })
})

describe('stopping', () => {
  it('finishes what is in flight, hands back what waits, and claims no more', async () => {
    await using engine = await startEngine({ concurrency: 32, webhookConcurrency: 2 })
    await using receiver = await startReceiver()
    const releases: (() => void)[] = []
    receiver.respond(({ response }) => releases.push(() => response.end()))
    const id = await engine.addWebhook(receiver.url)
    await engine.emit(10)
    await receiver.received(2)
    const stopped = engine.workers.stop(10_000)
    for (const release of releases) release()
    await stopped
    const rows = await engine.deliveriesOf(id, () => true)
    expect(rows.filter((row) => row.status === 'succeeded')).toHaveLength(2)
    const pending = rows.filter((row) => row.status === 'pending').map((row) => row.id)
    expect(pending).toHaveLength(8)
    expect(await engine.queue.missing(engine.db, pending)).toEqual([])
    expect(await engine.queue.claimed(engine.db, pending)).toEqual(new Set())
  })

  it('breaks off at the deadline what does not end, and hands it back uncounted', async () => {
    await using engine = await startEngine()
    await using receiver = await startReceiver()
    receiver.respond(silence)
    const id = await engine.addWebhook(receiver.url)
    await engine.emit(2)
    await receiver.received(2)
    await engine.workers.stop(100)
    const rows = await engine.deliveriesOf(id, () => true)
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
    expect(await engine.queue.claim(freshRange, 10)).toHaveLength(2)
  })
})
