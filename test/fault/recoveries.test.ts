import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import type { Db } from '../../server/database/connection.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { leaseSeconds } from '../../server/outbox/append.ts'
import { givePositions } from '../../server/outbox/positions.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { continueRecovery } from '../../server/webhook-delivery/recovery/recover.ts'
import { awaitFanOuts } from '../../server/webhook-delivery/recovery/recoverable.ts'
import { finishEvents } from '../../server/webhook-delivery/settlement/finish-events.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { asQueued, takingFor } from '../support/flows.ts'
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
      { db, queue, clock: engine.clock, retentionMs: 30 * 24 * 3_600_000, wake: () => undefined },
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
    flows: {
      ...engine.queue.flows,
      async put(trx, deliveries) {
        batches += 1
        await engine.queue.flows.put(trx, deliveries)
        // The batch is undone, as by a kill before the commit.
        if (batches % 3 === 0) throw new Error('killed')
      },
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
    flows: {
      ...engine.queue.flows,
      async put(trx, deliveries) {
        // The second begins while the first is at its work.
        if (second === undefined) {
          second = carryOn(0)
          await untilSomebodyWaits(engine.db)
        }
        await engine.queue.flows.put(trx, deliveries)
      },
    },
  }
  await carryOn(0, slow)
  await second
  expect(await progress()).toMatchObject({ status: 'completed', done: 1_500 })
  expect(await madeOnce(engine)).toEqual({ deliveries: 1_500, events: 1_500, jobs: 1_500 })
})

const leasesAsked = '%FROM outbox_rows%lease IS NOT NULL%'

/** Resolves once a recovery has looked `times` more whether a fan-out is at work, or with what it asks so. */
async function untilLookedFor(db: Db, times: number, statement = '%FROM pg_locks%'): Promise<void> {
  const looks = new Set<string>()
  while (looks.size < times) {
    const { rows } = await sql<{ look: string }>`
      SELECT query_start::text AS look FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE ${statement}
        -- One that is under way may see what is locked after this.
        AND state <> 'active'
    `.execute(db)
    for (const { look } of rows) looks.add(look)
  }
}

test.each([false, true])(
  'a recovery waits for a fan-out that left the webhook out because it was still disabled, polled before: %s',
  async (isPolledBefore) => {
    await using engine = await startEngine()
    await engine.workers.stop(1_000)
    const { db, accountId } = engine
    const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
    const since = engine.clock.now()
    await db.updateTable('webhooks').set({ status: 'disabled', disabled_reason: 'manual' }).execute()
    await engine.emit(3)
    if (isPolledBefore) await givePositions(db, accountId)
    // As the fan-out of another process that found no webhook and has not committed.
    const fanOut = await db.startTransaction().execute()
    await sql`SELECT FROM outbox_rows FOR UPDATE`.execute(fanOut)
    await db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
    const recovering = engine.recover(webhookId, since)
    await untilLookedFor(db, 3)
    await sql`DELETE FROM outbox_rows`.execute(fanOut)
    await fanOut.commit().execute()
    expect(await recovering).toMatchObject({ status: 'completed', done: 3 })
  },
)

test('a recovery waits for no fan-out that began after it', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const { db } = engine
  await engine.emit(2)
  const lockFirst = async () => {
    const fanOut = await db.startTransaction().execute()
    await sql`SELECT FROM outbox_rows ORDER BY event_id LIMIT 1 FOR UPDATE SKIP LOCKED`.execute(fanOut)
    return fanOut
  }
  const first = await lockFirst()
  const waiting = awaitFanOuts(db, engine.accountId)
  await untilLookedFor(db, 1)
  const second = await lockFirst()
  await first.rollback().execute()
  await waiting
  await second.rollback().execute()
})

test('a recovery reads nothing of the outbox to know of fan-outs, however much waits in it', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  await engine.emit(1_000)
  await engine.db.transaction().execute(async (trx) => {
    await awaitFanOuts(trx, engine.accountId)
    const { rows } = await sql<{ reads: number }>`
      SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS reads
      FROM pg_stat_xact_user_tables WHERE relname = 'outbox_rows'
    `.execute(trx)
    expect(rows).toEqual([{ reads: 0 }])
  })
})

test('a recovery waits for events that are leased, since they may have been matched before its webhook was enabled', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const { db } = engine
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  const other = await engine.addWebhook('http://127.0.0.1:9/other')
  const since = engine.clock.now()
  await db
    .updateTable('webhooks')
    .set({ status: 'disabled', disabled_reason: 'manual' })
    .where('id', '=', webhookId)
    .execute()
  await engine.emit(3)
  const taking = takingFor(3)
  const { leased } = await fanOutBatch({ ...engine, taking })
  expect(leased).toHaveLength(3)
  await db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  const recovering = engine.recover(webhookId, since)
  await untilLookedFor(db, 3, leasesAsked)
  await finishEvents(engine, taking.lease, leased.map(asQueued))
  expect(await recovering).toMatchObject({ status: 'completed', done: 3 })
  expect(await engine.deliveriesNow(other)).toHaveLength(3)
})

test('a recovery goes on when the lease of a process that is gone has lapsed', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  const since = engine.clock.now()
  await engine.emit(3)
  await fanOutBatch({ ...engine, taking: takingFor(3) })
  const recovering = engine.recover(webhookId, since)
  await untilLookedFor(engine.db, 3, leasesAsked)
  await engine.advance(leaseSeconds + 1)
  // They are about to be fanned out to it.
  expect(await recovering).toMatchObject({ status: 'completed', done: 0 })
  await engine.fanOut()
  expect(await engine.deliveriesNow(webhookId)).toHaveLength(3)
})
