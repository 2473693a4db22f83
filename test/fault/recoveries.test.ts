import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { continueRecovery } from '../../server/delivery/recover.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { createTurns } from '../../server/queue/turns.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { live } from '../support/scope.ts'

/** More than one task of a recovery works on: ten batches of a thousand events. */
const missed = 10_500

/** An engine without workers and a webhook that has missed events. */
async function missedEvents(count: number) {
  const engine = await startEngine()
  onTestFinished(() => engine.stop())
  await engine.workers.stop(1_000)
  const { db, accountId } = engine
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  const since = engine.clock.now()
  await db.updateTable('webhooks').set({ status: 'disabled', disabled_reason: 'manual' }).execute()
  await engine.emit(count)
  await engine.fanOut()
  await db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  const { id } = await engine.deliveries.recover(db, live(accountId), webhookId, { since: since.toISOString() })
  const carryOn = (task: number, queue: Queue = engine.queue) =>
    continueRecovery(
      { db, queue, turns: createTurns(), clock: engine.clock, wake: () => undefined },
      { accountId, recoveryId: id, task },
    )
  const progress = () => engine.deliveries.getRecovery(db, live(accountId), webhookId, id)
  return { engine, webhookId, carryOn, progress }
}

async function madeOnce({ db }: Engine) {
  const { rows } = await sql<{ deliveries: number; events: number; jobs: number }>`
    SELECT count(*)::int AS deliveries, count(DISTINCT event_id)::int AS events,
      (SELECT count(*)::int FROM pgboss.job WHERE name = 'deliveries') AS jobs
    FROM deliveries
  `.execute(db)
  return rows[0]
}

test('a recovery that is killed between batches and begun again sends each event once', async () => {
  const { engine, carryOn, progress } = await missedEvents(missed)
  let batches = 0
  const failing: Queue = {
    ...engine.queue,
    async put(trx, deliveries) {
      batches += 1
      await engine.queue.put(trx, deliveries)
      // The batch is undone, as by a kill before the commit.
      if (batches % 3 === 0) throw new Error('killed')
    },
  }
  for (let task = 0; (await progress()).status === 'running'; ) {
    const before = await progress()
    await carryOn(task, failing).then(
      // A task whose end the queue never heard of comes again.
      () => carryOn(task++),
      (error) => expect(error.message).toBe('killed'),
    )
    expect((await progress()).done).toBeGreaterThan(before.done)
  }
  expect(await progress()).toMatchObject({ status: 'completed', count: missed, countIsExact: true, done: missed })
  expect(await madeOnce(engine)).toEqual({ deliveries: missed, events: missed, jobs: missed })
})

test('a task that runs twice at once, as after its claim has lapsed, sends each event once', async () => {
  const { engine, carryOn, progress } = await missedEvents(1_500)
  let second: Promise<void> | undefined
  const slow: Queue = {
    ...engine.queue,
    async put(trx, deliveries) {
      // The second begins while the first is at its work.
      if (second === undefined) {
        second = carryOn(0)
        await untilSomebodyWaits(engine.db)
      }
      await engine.queue.put(trx, deliveries)
    },
  }
  await carryOn(0, slow)
  await second
  expect(await progress()).toMatchObject({ status: 'completed', done: 1_500 })
  expect(await madeOnce(engine)).toEqual({ deliveries: 1_500, events: 1_500, jobs: 1_500 })
})

test('a recovery waits for a fan-out that left the webhook out because it was still disabled', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const { db } = engine
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  const since = engine.clock.now()
  await db.updateTable('webhooks').set({ status: 'disabled', disabled_reason: 'manual' }).execute()
  await engine.emit(3)
  // As the fan-out of another process that found no webhook and has not committed.
  const fanOut = await db.startTransaction().execute()
  await sql`SELECT FROM outbox FOR UPDATE`.execute(fanOut)
  await db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  const recovering = engine.recover(webhookId, since)
  await untilSomebodyWaits(db)
  await sql`DELETE FROM outbox`.execute(fanOut)
  await fanOut.commit().execute()
  expect(await recovering).toMatchObject({ status: 'completed', done: 3 })
})
