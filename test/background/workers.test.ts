import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { firstIdAt, newId } from '../../server/shared/ids.ts'
import { attempted, hasSucceeded, startEngine } from '../support/engine.ts'
import { answer, startReceiver } from '../support/receiver.ts'

test('the rounds of the workers delete what is past its retention, every minute', async () => {
  await using engine = await startEngine()
  const created_at = new Date('2026-01-01T00:00:00.000Z')
  const id = firstIdAt('event', created_at)
  const event = { id, account_id: engine.accountId, type: 'contact.deleted', body: '{}', created_at }
  await engine.db.insertInto('events').values(event).execute()
  const events = () => engine.db.selectFrom('events').select('id').execute()
  await expect
    .poll(async () => {
      await engine.tick(15)
      return events()
    })
    .toEqual([])
})

test('the rounds of the workers delete contacts that never confirmed, every minute, with an event for each', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  const webhookId = await engine.addWebhook(receiver.url)
  const { db, accountId: account_id } = engine
  const at = (day: string) => ({ created_at: new Date(day), updated_at: new Date(day) })
  const audience = { id: newId('audience', new Date('2026-01-01')), account_id, name: 'Readers', ...at('2026-01-01') }
  await db.insertInto('audiences').values(audience).execute()
  // The engine begins on 1 March: one was asked to confirm more than 30 days before, the other one fewer.
  const [old = '', young = ''] = ['2026-01-29', '2026-02-01'].map((day) => newId('subscriber', new Date(day)))
  for (const [id, day] of [
    [old, '2026-01-29'],
    [young, '2026-02-01'],
  ] as const) {
    const email = `${id}@example.org`
    await db
      .insertInto('subscribers')
      .values({ id, account_id, email, email_key: email, ...at(day) })
      .execute()
    const contact = { audience_id: audience.id, subscriber_id: id, account_id, status: 'pending' as const, ...at(day) }
    await db.insertInto('contacts').values(contact).execute()
  }
  const left = () => db.selectFrom('contacts').select('subscriber_id').execute()
  await expect
    .poll(async () => {
      await engine.tick(15)
      return left()
    })
    .toEqual([{ subscriber_id: young }])
  const { event_id: eventId } = await engine.deliveryOf(webhookId, hasSucceeded)
  const event = await db
    .selectFrom('events')
    .select(['type', 'body'])
    .where('id', '=', eventId)
    .executeTakeFirstOrThrow()
  expect({ type: event.type, ...JSON.parse(event.body).data }).toEqual({
    type: 'contact.deleted',
    subscriberId: old,
    audienceId: audience.id,
  })
})

test('the rounds of the workers give a pending delivery that lost its job a new one, every hour', async () => {
  await using engine = await startEngine()
  await using receiver = await startReceiver()
  receiver.respondOnce(answer(500))
  const webhookId = await engine.addWebhook(receiver.url)
  await engine.emit()
  const { id } = await engine.deliveryOf(webhookId, attempted(1))
  await inTransaction(engine.db, (trx) => engine.queue.remove(trx, [id]))
  // From half past nine to shortly before ten.
  await engine.advance(29.5 * 60)
  await expect
    .poll(async () => {
      await engine.tick(15)
      return (await engine.deliveriesNow(webhookId))[0]?.status
    })
    .toBe('succeeded')
})
