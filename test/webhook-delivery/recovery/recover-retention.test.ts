import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { createRetention } from '../../../server/background/retention.ts'
import { continueRecovery } from '../../../server/webhook-delivery/recovery/recover.ts'
import { knownSince } from '../../../server/webhook-delivery/recovery/recoverable.ts'
import { type Engine, startEngine } from '../../support/engine.ts'
import { live } from '../../support/scope.ts'

/* Recoveries of events whose deliveries may be gone with the retention. */

const hour = 3_600
const day = 24 * hour
const retentionMs = 30 * day * 1_000

// Identifiers of a process never go back, so each test is later than the one before.
let days = 0

async function startWithoutWorkers(): Promise<Engine> {
  const engine = await startEngine({ retentionMs })
  await engine.workers.stop(1_000)
  await engine.advance(days * day)
  days += 100
  return engine
}

const expire = ({ db, clock }: Engine) => createRetention({ db, clock, retentionMs })()

/** Has all deliveries be accepted. */
async function accept({ db, clock }: Engine): Promise<void> {
  await sql`UPDATE deliveries SET status = 'succeeded', next_attempt_at = NULL, completed_at = ${clock.now()}`.execute(
    db,
  )
  await sql`DELETE FROM pgboss.job WHERE name = 'deliveries'`.execute(db)
}

/** Commits an event that an enabled webhook does not get. */
async function miss(engine: Engine, webhookId: string): Promise<void> {
  const set = (status: 'enabled' | 'disabled') =>
    engine.db
      .updateTable('webhooks')
      .set({ status, disabled_reason: status === 'enabled' ? null : 'manual' })
      .where('id', '=', webhookId)
      .execute()
  await set('disabled')
  await engine.emit()
  await engine.fanOut()
  await set('enabled')
}

test("an accepted event is not sent again when its delivery is gone and another webhook's keeps it", async () => {
  await using engine = await startWithoutWorkers()
  const { db } = engine
  const since = engine.clock.now()
  const accepting = await engine.addWebhook('http://127.0.0.1:9/accepting')
  const [event] = await engine.emit()
  await engine.fanOut()
  await accept(engine)
  await engine.advance(20 * day)
  const late = await engine.addWebhook('http://127.0.0.1:9/late')
  expect(await engine.recover(late, since)).toMatchObject({ count: 1, done: 1 })
  await engine.advance(15 * day)
  expect(await expire(engine)).toEqual({ events: 0, deliveries: 1, emails: 0 })
  expect(await db.selectFrom('events').select('id').execute()).toEqual([{ id: event }])

  expect(await engine.recover(accepting, since)).toMatchObject({ status: 'completed', count: 0, done: 0 })
  expect(await engine.deliveriesNow(accepting)).toEqual([])
})

test('a recovery leaves out what passes its retention while it is at work', async () => {
  await using engine = await startWithoutWorkers()
  const { db, queue, clock, accountId, deliveries } = engine
  const scope = live(accountId)
  const since = clock.now()
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  await miss(engine, webhookId)
  await engine.advance(day)
  await miss(engine, webhookId)
  // The older event has an hour and a half left.
  await engine.advance(29 * day - 1.5 * hour)
  const { id, count } = await deliveries.recover(db, scope, webhookId, { since: since.toISOString() })
  expect(count).toBe(2)
  // Now less than the margin of an hour.
  await engine.advance(hour)
  const means = { db, queue, clock, retentionMs, wake: () => undefined }
  await continueRecovery(means, { accountId, recoveryId: id, task: 0 })
  expect(await deliveries.getRecovery(db, scope, webhookId, id)).toMatchObject({ status: 'completed', done: 1 })
  expect(await engine.recover(webhookId, since)).toMatchObject({ count: 0 })
})

test.each([
  ['30 days', 30 * day, 30 * day - hour],
  ['two minutes', 120, 108],
])('a recovery reaches back nearly as far as a retention of %s', (_, retention, reach) => {
  const now = new Date('2026-03-01T00:00:00.000Z')
  const known = knownSince(new Date(0), { clock: { now: () => now }, retentionMs: retention * 1_000 })
  expect((now.getTime() - known.getTime()) / 1_000).toBe(reach)
})
