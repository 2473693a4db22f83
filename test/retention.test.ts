import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Clock } from '../server/clock.ts'
import { firstIdAt, newId } from '../server/ids.ts'
import { deleteExpired } from '../server/retention.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

let database: TestDatabase
const now = new Date('2026-03-31T12:00:00.000Z')
const clock: Clock = { now: () => now }
const day = 24 * 3_600_000
const accountId = newId('account', now)
const webhookId = newId('webhook', now)

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** An event of so many days ago with a delivery and an attempt. */
async function addEvent(
  daysAgo: number,
  status: 'pending' | 'succeeded',
): Promise<{ event: string; delivery: string }> {
  const at = new Date(now.getTime() - daysAgo * day)
  const event = firstIdAt('event', at)
  const delivery = firstIdAt('delivery', at)
  const { db } = database
  await db
    .insertInto('events')
    .values({ id: event, account_id: accountId, type: 'contact.deleted', body: '{}', created_at: at })
    .execute()
  await db
    .insertInto('deliveries')
    .values({
      id: delivery,
      account_id: accountId,
      webhook_id: webhookId,
      event_id: event,
      event_type: 'contact.deleted',
      status,
      created_at: at,
      completed_at: status === 'pending' ? null : at,
      next_attempt_at: status === 'pending' ? at : null,
    })
    .execute()
  await db
    .insertInto('attempts')
    .values({
      delivery_id: delivery,
      number: 1,
      started_at: at,
      duration_ms: 1,
      response_status: 200,
      response_body: '',
      error: null,
    })
    .execute()
  return { event, delivery }
}

async function kept() {
  const { db } = database
  const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)
  return {
    events: ids(await db.selectFrom('events').select('id').orderBy('id').execute()),
    deliveries: ids(await db.selectFrom('deliveries').select('id').orderBy('id').execute()),
    attempts: ids(await db.selectFrom('attempts').select('delivery_id as id').orderBy('delivery_id').execute()),
  }
}

describe('retention', () => {
  it('deletes what is older, with its attempts, and keeps what is younger', async () => {
    await addEvent(40, 'succeeded')
    await addEvent(31, 'succeeded')
    const young = await addEvent(29, 'succeeded')
    expect(await deleteExpired({ db: database.db, clock }, { retentionMs: 30 * day })).toEqual({
      events: 2,
      deliveries: 2,
    })
    expect(await kept()).toEqual({
      events: [young.event],
      deliveries: [young.delivery],
      attempts: [young.delivery],
    })
  })

  it('keeps a delivery that is still pending, and the event it needs', async () => {
    const pending = await addEvent(45, 'pending')
    await addEvent(50, 'succeeded')
    await deleteExpired({ db: database.db, clock }, { retentionMs: 30 * day })
    const left = await kept()
    expect(left.events).toContain(pending.event)
    expect(left.deliveries).toContain(pending.delivery)
    expect(left.events).toHaveLength(2)
  })

  it('deletes any number, in chunks', async () => {
    const at = new Date(now.getTime() - 60 * day)
    const rows = Array.from({ length: 4_500 }, (_, index) => ({
      id: firstIdAt('event', new Date(at.getTime() + index)),
      account_id: accountId,
      type: 'contact.deleted',
      body: '{}',
      created_at: at,
    }))
    await database.db.deleteFrom('deliveries').execute()
    await database.db.deleteFrom('events').execute()
    await database.db.insertInto('events').values(rows).execute()
    const { events } = await deleteExpired({ db: database.db, clock }, { retentionMs: 30 * day })
    expect(events).toBe(4_500)
  })
})
