import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { firstIdAt } from '../../server/shared/ids.ts'
import { attempted, startEngine } from '../support/engine.ts'
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
