import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EventTypeName } from '../../contract/event-types.ts'
import { type Mode, modes } from '../../contract/mode.ts'
import { newId } from '../../server/shared/ids.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { testing } from '../support/scope.ts'

/*
 * The rows that a process of a version without modes writes beside one of this version. Its statements name no mode.
 */

let engine: Engine

beforeEach(async () => {
  engine = await startEngine()
  await engine.workers.stop(1_000)
})
afterEach(() => engine.stop())

const types: EventTypeName[] = ['email.sent', 'contact.deleted']

/** A webhook that such a process made. */
async function addOldWebhook(): Promise<string> {
  const id = newId('webhook', engine.clock.now())
  await sql`
    INSERT INTO webhooks (id, account_id, url, events, secret)
    VALUES (${id}, ${engine.accountId}, 'http://127.0.0.1:9/', ${types}::text[], '')
  `.execute(engine.db)
  return id
}

async function addWebhook(mode: Mode): Promise<string> {
  const id = await addOldWebhook()
  await engine.db.updateTable('webhooks').set({ mode }).where('id', '=', id).execute()
  return id
}

async function appendOld(type: EventTypeName): Promise<string> {
  const id = newId('event', engine.clock.now())
  await sql`
    WITH event AS (
      INSERT INTO events (id, account_id, type, body, created_at)
      VALUES (${id}, ${engine.accountId}, ${type}, '{}', ${engine.clock.now()})
      RETURNING id, account_id, type
    )
    INSERT INTO outbox (event_id, account_id, type) SELECT id, account_id, type FROM event
  `.execute(engine.db)
  return id
}

const deliveries = async () =>
  (await engine.db.selectFrom('deliveries').select(['event_id', 'webhook_id']).execute())
    .map((row) => `${row.event_id} ${row.webhook_id}`)
    .toSorted()

test('an event that it appends is live, and goes to live webhooks alone unless both modes share it', async () => {
  const [ofTest, ofLive] = [await addWebhook('test'), await addWebhook('live')]
  const ofOld = await addOldWebhook()
  const email = await appendOld('email.sent')
  const shared = await appendOld('contact.deleted')
  expect(await engine.db.selectFrom('events').select('mode').distinct().execute()).toEqual([{ mode: 'live' }])
  await engine.fanOut()
  expect(await deliveries()).toEqual(
    [
      ...[ofLive, ofOld].map((id) => `${email} ${id}`),
      ...[ofTest, ofLive, ofOld].map((id) => `${shared} ${id}`),
    ].toSorted(),
  )
})

test('a webhook that it makes is live: it is seen with a live key, and gets no email events of test keys', async () => {
  const webhookId = await addOldWebhook()
  const list = async (mode: Mode) => {
    const query = { accountId: engine.accountId, mode }
    return (await engine.deliveries
      .list(engine.db, query, webhookId, { limit: 10 })
      .catch((error) => error.code)) as unknown
  }
  expect(await list('test')).toBe('not_found')
  expect(await list('live')).toMatchObject({ data: [] })
  const event = newId('event', engine.clock.now())
  const { accountId, mode } = testing(engine.accountId)
  await engine.db
    .insertInto('events')
    .values({ id: event, account_id: accountId, mode, type: 'email.sent', body: '{}', created_at: engine.clock.now() })
    .execute()
  await engine.db
    .insertInto('outbox')
    .values({ event_id: event, account_id: accountId, mode, type: 'email.sent' })
    .execute()
  await engine.fanOut()
  expect(await deliveries()).toEqual([])
  expect(await engine.db.selectFrom('outbox').selectAll().execute()).toEqual([])
})

test('a recovery sends what it appended as it would have been fanned out', async () => {
  const since = engine.clock.now()
  const hooks = Object.fromEntries(
    await Promise.all(modes.map(async (mode) => [mode, await addWebhook(mode)] as const)),
  )
  await engine.db.updateTable('webhooks').set({ status: 'disabled', disabled_reason: 'manual' }).execute()
  const email = await appendOld('email.sent')
  const shared = await appendOld('contact.deleted')
  await engine.fanOut()
  expect(await deliveries()).toEqual([])
  await engine.db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).execute()
  for (const mode of modes) await engine.recover(hooks[mode] ?? '', since, mode)
  expect(await deliveries()).toEqual(
    [`${email} ${hooks.live}`, `${shared} ${hooks.live}`, `${shared} ${hooks.test}`].toSorted(),
  )
})
