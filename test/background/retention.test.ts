import { randomUUID } from 'node:crypto'
import { CompiledQuery, Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRetention, type Expired } from '../../server/background/retention.ts'
import { inTransaction } from '../../server/database/connection.ts'
import type { Database } from '../../server/database/schema.ts'
import type { Clock } from '../../server/lib/clock.ts'
import { firstIdAt } from '../../server/shared/ids.ts'
import { continueRecovery } from '../../server/webhook-delivery/recovery/recover.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { untilSomebodyWaits } from '../support/locks.ts'
import { live } from '../support/scope.ts'

let database: TestDatabase
const now = new Date('2026-03-31T12:00:00.000Z')
const second = 1_000
const hour = 3_600 * second
const day = 24 * hour
const retentionMs = 30 * day
const accountId = firstIdAt('account', now)
const webhookId = firstIdAt('webhook', now)

beforeEach(async () => {
  database = await createTestDatabase()
})
afterEach(() => database.drop())

/** Deletes as of `days` after now. */
function expire(days = 0): Promise<Expired> {
  const clock: Clock = { now: () => new Date(now.getTime() + days * day) }
  return createRetention({ db: database.db, clock, retentionMs })()
}

async function insertEvents(times: readonly number[]): Promise<string[]> {
  const rows = times.map((time) => ({
    id: firstIdAt('event', new Date(time)),
    account_id: accountId,
    type: 'contact.deleted',
    body: '{}',
    created_at: new Date(time),
  }))
  await database.db.insertInto('events').values(rows).execute()
  return rows.map(({ id }) => id)
}

type NewDelivery = { event: string; time: number; status: 'pending' | 'succeeded' | 'failed' }

/** Each with an attempt. */
async function insertDeliveries(deliveries: readonly NewDelivery[]): Promise<string[]> {
  const { db } = database
  const rows = deliveries.map(({ event, time, status }) => ({
    id: firstIdAt('delivery', new Date(time)),
    account_id: accountId,
    webhook_id: webhookId,
    event_id: event,
    event_type: 'contact.deleted',
    status,
    created_at: new Date(time),
    completed_at: status === 'pending' ? null : new Date(time),
    next_attempt_at: status === 'pending' ? new Date(time) : null,
  }))
  const attempts = rows.map(({ id, created_at }) => ({
    delivery_id: id,
    number: 1,
    started_at: created_at,
    duration_ms: 1,
    response_status: 500,
    response_body: '',
    error: null,
  }))
  await db.insertInto('deliveries').values(rows).execute()
  await db.insertInto('attempts').values(attempts).execute()
  return rows.map(({ id }) => id)
}

type Made = { event: string; delivery: string }

/** An event of so many days ago, and its delivery made `lateMs` after it. */
async function addEvent(daysAgo: number, status: NewDelivery['status'], lateMs = 10): Promise<Made> {
  const time = now.getTime() - daysAgo * day
  const [event = ''] = await insertEvents([time])
  const [delivery = ''] = await insertDeliveries([{ event, time: time + lateMs, status }])
  return { event, delivery }
}

async function left() {
  const { db } = database
  const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)
  return {
    events: ids(await db.selectFrom('events').select('id').orderBy('id').execute()),
    deliveries: ids(await db.selectFrom('deliveries').select('id').orderBy('id').execute()),
    attempts: ids(await db.selectFrom('attempts').select('delivery_id as id').orderBy('delivery_id').execute()),
  }
}

/** Returns the result of `left` if only these events are left, with one delivery and one attempt each. */
function only(...made: Made[]) {
  const deliveries = made.map(({ delivery }) => delivery)
  return { events: made.map(({ event }) => event), deliveries, attempts: deliveries }
}

test('what is past its retention is deleted with its attempts, and what is younger is kept', async () => {
  await addEvent(40, 'succeeded')
  await addEvent(31, 'failed')
  const young = await addEvent(29, 'succeeded')
  expect(await expire()).toEqual({ events: 2, deliveries: 2, emails: 0 })
  expect(await left()).toEqual(only(young))
})

test('what is past its retention is deleted whatever is kept beside it', async () => {
  await addEvent(50, 'succeeded')
  const pending = await addEvent(45, 'pending')
  await addEvent(44.9999, 'succeeded')
  await addEvent(40, 'succeeded')
  await expire()
  expect(await left()).toEqual(only(pending))
})

test('what is past its retention is deleted in any number', async () => {
  const first = now.getTime() - 60 * day
  const times = Array.from({ length: 4_500 }, (_, index) => first + index * 100)
  const events = await insertEvents(times)
  const isPending = (index: number) => index % 1_000 === 999
  const made = times.map((time, index) => ({
    event: events[index] as string,
    time: time + 30,
    status: isPending(index) ? ('pending' as const) : ('succeeded' as const),
  }))
  const deliveries = await insertDeliveries(made)
  expect(await expire()).toEqual({ events: 4_496, deliveries: 4_496, emails: 0 })
  expect(await left()).toEqual({
    events: events.filter((_, index) => isPending(index)),
    deliveries: deliveries.filter((_, index) => isPending(index)),
    attempts: deliveries.filter((_, index) => isPending(index)),
  })
  expect(await expire()).toEqual({ events: 0, deliveries: 0, emails: 0 })
})

test('an event past its retention is kept while it awaits its fan-out', async () => {
  const [event = ''] = await insertEvents([now.getTime() - 45 * day])
  await database.db
    .insertInto('outbox_rows')
    .values({ event_id: event, account_id: accountId, type: 'contact.deleted' })
    .execute()
  await expire()
  expect((await left()).events).toEqual([event])
  await database.db.deleteFrom('outbox_rows').execute()
  await expire()
  expect((await left()).events).toEqual([])
})

test.each([
  ['in the same second', 10],
  ['in the next half minute', 33 * second],
  ['six hours later', 6 * hour],
  ['by a clock that is an hour behind', -hour],
])('an event past its retention is kept while its delivery is pending, which was made %s', async (_, lateMs) => {
  const pending = await addEvent(45, 'pending', lateMs)
  await addEvent(45.001, 'succeeded', lateMs)
  await expire()
  expect(await left()).toEqual(only(pending))
})

test.each([
  ['a moment later', 10],
  ['six hours later', 6 * hour],
])('an event past its retention is kept while its delivery can be sent again, which was made %s', async (_, lateMs) => {
  const made = await addEvent(30 + lateMs / 2 / day, 'failed', lateMs)
  expect(await expire()).toEqual({ events: 0, deliveries: 0, emails: 0 })
  expect(await left()).toEqual(only(made))
  expect(await expire(1)).toEqual({ events: 1, deliveries: 1, emails: 0 })
})

test('an event past its retention is kept when its delivery ends after the deliveries were looked through', async () => {
  const made = await addEvent(45, 'pending')
  const { db } = database
  let expiring: Promise<Expired> | undefined
  await inTransaction(db, async (trx) => {
    await sql`LOCK TABLE events`.execute(trx)
    expiring = expire()
    await untilSomebodyWaits(db)
    await db.updateTable('deliveries').set({ status: 'failed', completed_at: now }).execute()
  })
  expect(await expiring).toEqual({ events: 0, deliveries: 0, emails: 0 })
  expect(await left()).toEqual(only(made))
})

test('what was kept is looked at again once an hour', async () => {
  const { db } = database
  let at = now
  const clock: Clock = { now: () => at }
  const runAfter = (ms: number) => {
    at = new Date(at.getTime() + ms)
    return deleteExpired()
  }
  const deleteExpired = createRetention({ db, clock, retentionMs })
  await addEvent(45, 'pending')
  const young = await addEvent(30 - 1 / 24, 'succeeded')
  expect(await runAfter(0)).toEqual({ events: 0, deliveries: 0, emails: 0 })
  await db.updateTable('deliveries').set({ status: 'failed', completed_at: now }).execute()
  expect(await runAfter(hour - 1)).toEqual({ events: 0, deliveries: 0, emails: 0 })
  expect(await runAfter(1)).toEqual({ events: 1, deliveries: 1, emails: 0 })
  expect(await left()).toEqual(only(young))
  expect(await runAfter(60 * second)).toEqual({ events: 1, deliveries: 1, emails: 0 })
})

let days = 0
const longerMs = 1_000 * day

/**
 * An engine without workers, whose events are past their retention and were not fanned out. Recoveries have a longer
 * retention, as while an operator changes the setting in one process after the other.
 */
async function missedEvents() {
  const engine = await startEngine({ retentionMs: longerMs })
  await engine.workers.stop(1_000)
  const webhook = await engine.addWebhook('http://127.0.0.1:9/')
  const since = engine.clock.now()
  await engine.db.updateTable('webhooks').set({ status: 'disabled', disabled_reason: 'manual' }).execute()
  const events = await engine.emit(3)
  await engine.fanOut()
  await engine.db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  // Identifiers of this process never go back, so each test has to be later than the one before.
  days += 40
  await engine.advance(days * 24 * 3_600)
  const { db, clock } = engine
  const deleteExpired = () => createRetention({ db, clock, retentionMs })()
  const eventsLeft = async () =>
    (await db.selectFrom('events').select('id').orderBy('id').execute()).map(({ id }) => id)
  return { engine, webhook, since, events, deleteExpired, eventsLeft }
}

test.each(['failed', 'never made'] as const)(
  'what is being recovered is kept, and retention does not wait: deliveries that %s',
  async (which) => {
    const { engine, webhook, since, events, deleteExpired, eventsLeft } = await missedEvents()
    await using _ = engine
    const { db, queue, clock, accountId } = engine
    if (which === 'failed') {
      await engine.recover(webhook, since)
      await sql`UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, completed_at = ${clock.now()}`.execute(
        db,
      )
      await sql`DELETE FROM pgboss.job WHERE name = 'deliveries'`.execute(db)
    }
    const expired: Expired[] = []
    const watched: typeof queue = {
      ...queue,
      flows: {
        ...queue.flows,
        async put(trx, deliveries) {
          // All of them are pending by now, in a transaction that has not committed.
          expired.push(await deleteExpired())
          await queue.flows.put(trx, deliveries)
        },
      },
    }
    const { id } = await engine.deliveries.recover(db, live(accountId), webhook, { since: since.toISOString() })
    const means = { db, queue: watched, clock, retentionMs: longerMs, wake: () => undefined }
    await continueRecovery(means, { accountId, recoveryId: id, task: 0 })
    expired.push(await deleteExpired())

    expect(expired).toEqual(Array(2).fill({ events: 0, deliveries: 0, emails: 0 }))
    const rows = await engine.deliveriesNow(webhook)
    expect(rows.map(({ event_id, status }) => [event_id, status])).toEqual(events.map((event) => [event, 'pending']))
    expect(await eventsLeft()).toEqual(events)
    expect(await engine.deliveries.getRecovery(db, live(accountId), webhook, id)).toMatchObject({
      status: 'completed',
      done: 3,
    })
  },
)

test('what is being recovered is left out where retention was first, and the recovery waits for that', async () => {
  const { engine, webhook, since, deleteExpired, eventsLeft } = await missedEvents()
  await using _ = engine
  const { db } = engine
  const inTheWay = await db.startTransaction().execute()
  // Holds retention up when it has locked the events, and lets everybody read.
  await sql`LOCK TABLE event_positions IN SHARE ROW EXCLUSIVE MODE`.execute(inTheWay)
  const expiring = deleteExpired()
  await untilSomebodyWaits(db, 'DELETE FROM events')
  const recovering = engine.recover(webhook, since)
  await untilSomebodyWaits(db, 'for key share')
  await inTheWay.rollback().execute()
  expect(await expiring).toMatchObject({ events: 3 })
  expect(await recovering).toMatchObject({ status: 'completed', done: 0, count: 0 })
  expect(await eventsLeft()).toEqual([])
  expect(await engine.deliveriesNow(webhook)).toEqual([])
})

test('the deliveries made apart from their events are found by the index of those', async () => {
  await addEvent(45, 'pending', 6 * hour)
  const pool = new pg.Pool({ connectionString: database.connectionString, options: '-c enable_seqscan=off' })
  const queries: CompiledQuery[] = []
  await using db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool }),
    log({ query }) {
      queries.push(query)
    },
  })
  await createRetention({ db, clock: { now: () => now }, retentionMs })()
  const deletion = queries.find((query) => query.sql.includes('DELETE FROM events')) ?? expect.fail('no deletion')
  const plan = CompiledQuery.raw(`EXPLAIN ${deletion.sql}`, [...deletion.parameters])
  expect(JSON.stringify((await db.executeQuery(plan)).rows)).toContain('deliveries_apart')
})

test('retention forgets by the database’s time what processes said of flows after a minute, and what came of attempts after two hours', async () => {
  const { db } = database
  const present = Date.now()
  const states = [70, 30].map((seconds) => ({
    flow: seconds,
    process: randomUUID(),
    max_in_flight: 4,
    in_flight: 0,
    waits_for: null,
    updated_at: new Date(present - seconds * second),
  }))
  await db.insertInto('flow_states').values(states).execute()
  const outcomes = [2.1, 1.9].map((hours) => ({
    webhook_id: webhookId,
    bucket: new Date(present - hours * hour),
    succeeded: 1,
    failed: 0,
    duration_ms: '5',
    max_duration_ms: 5,
  }))
  await db.insertInto('webhook_outcomes').values(outcomes).execute()
  await expire()
  expect(await db.selectFrom('flow_states').select('flow').execute()).toEqual([{ flow: 30 }])
  expect(await db.selectFrom('webhook_outcomes').select('bucket').execute()).toEqual([{ bucket: outcomes[1]?.bucket }])
})
